#!/usr/bin/env bash
# One scenario, one answer: the debug build, the build of a profile and a repeat of
# the latter must write the same bytes, and so must a grid for any `--jobs`. Only
# `wall_seconds` in manifest.json may differ. Usage: tests/same_bytes.sh TARGET_DIRECTORY PROFILE
set -euo pipefail

target=$1
profile=$2
out=$target/same-bytes
rm -rf "$out"

for example in bcube-deadlock leaf-spine moe incast-victims zeropod; do
    for run in debug $profile $profile-again; do
        mkdir -p "$out/$run"
        "$target/${run%-again}/xoff" run "examples/$example.toml" --quiet \
            --out "$out/$run/$example" >"$out/$run-$example.txt"
    done
    for run in debug $profile-again; do
        cmp "$out/$profile-$example.txt" "$out/$run-$example.txt"
        diff --recursive --brief --exclude=manifest.json "$out/$profile/$example" "$out/$run/$example"
        diff <(grep -v '"wall_seconds"' "$out/$profile/$example/manifest.json") \
            <(grep -v '"wall_seconds"' "$out/$run/$example/manifest.json")
    done
    echo "same bytes: $example, debug and $profile and again ($(du -sb "$out/$profile/$example" | cut -f1) bytes)"
done

# A grid, besides: the same for one run at a time and two.
grid=(examples/leaf-spine.toml --set run.duration=20us --vary traffic.0.load=0.3,0.6
    --vary flow_control.scheme=pfc,none --seeds 1..2 --interval ci95)
for run in debug-1 $profile-1 $profile-2; do
    "$target/${run%-*}/xoff" run "${grid[@]}" --quiet --jobs "${run#*-}" \
        --out "$out/grids/$run" >"$out/grid-$run.txt"
done
for run in debug-1 $profile-2; do
    cmp "$out/grid-$profile-1.txt" "$out/grid-$run.txt"
    diff --recursive --brief --exclude=manifest.json "$out/grids/$profile-1" "$out/grids/$run"
    for manifest in "$out/grids/$profile-1"/runs/*/manifest.json; do
        diff <(grep -v '"wall_seconds"' "$manifest") \
            <(grep -v '"wall_seconds"' "$out/grids/$run/${manifest#"$out/grids/$profile-1/"}")
    done
done
echo "same bytes: a grid of eight runs, debug and $profile, --jobs 1 and 2"
