#!/usr/bin/env bash
# One scenario, one answer: the debug build, the release build and a repeat of
# the latter must write the same bytes. Only `wall_seconds` in manifest.json may
# differ. Usage: tests/same_bytes.sh TARGET_DIRECTORY
set -euo pipefail

target=$1
out=$target/same-bytes
rm -rf "$out"

for example in bcube-deadlock leaf-spine moe; do
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
