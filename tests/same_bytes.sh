#!/usr/bin/env bash
# One scenario, one answer: the debug build, the release build and a repeat of
# the latter must write the same bytes, and so must a grid for any `--jobs`. Only
# `wall_seconds` in manifest.json may differ. Usage: tests/same_bytes.sh TARGET_DIRECTORY
set -euo pipefail

target=$1
out=$target/same-bytes
rm -rf "$out"

for example in bcube-deadlock leaf-spine moe incast-victims zeropod; do
    for run in debug release release-again; do
        mkdir -p "$out/$run"
        "$target/${run%-again}/xoff" run "examples/$example.toml" --quiet \
            --out "$out/$run/$example" >"$out/$run-$example.txt"
    done
    for run in debug release-again; do
        cmp "$out/release-$example.txt" "$out/$run-$example.txt"
        diff --recursive --brief --exclude=manifest.json "$out/release/$example" "$out/$run/$example"
        diff <(grep -v '"wall_seconds"' "$out/release/$example/manifest.json") \
            <(grep -v '"wall_seconds"' "$out/$run/$example/manifest.json")
    done
    echo "same bytes: $example, debug and release and again ($(du -sb "$out/release/$example" | cut -f1) bytes)"
done

# A grid, besides: the same for one run at a time and two.
grid=(examples/leaf-spine.toml --set run.duration=20us --vary traffic.0.load=0.3,0.6
    --vary flow_control.scheme=pfc,none --seeds 1..2 --interval ci95)
for run in debug-1 release-1 release-2; do
    "$target/${run%-*}/xoff" run "${grid[@]}" --quiet --jobs "${run#*-}" \
        --out "$out/grids/$run" >"$out/grid-$run.txt"
done
for run in debug-1 release-2; do
    cmp "$out/grid-release-1.txt" "$out/grid-$run.txt"
    diff --recursive --brief --exclude=manifest.json "$out/grids/release-1" "$out/grids/$run"
    for manifest in "$out/grids/release-1"/runs/*/manifest.json; do
        diff <(grep -v '"wall_seconds"' "$manifest") \
            <(grep -v '"wall_seconds"' "$out/grids/$run/${manifest#"$out/grids/release-1/"}")
    done
done
echo "same bytes: a grid of eight runs, debug and release, --jobs 1 and 2"
