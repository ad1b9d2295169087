#!/usr/bin/env bash
# Two builds, one answer: for a change that must not change results. Both builds run every example and
# the scenarios of SEEDS seeds of the swarm, on 1, 2 and 5 threads; what they print and every file that
# they write must be the same bytes, but for `wall_seconds`.
# With REPRO=1 also results.json of `xoff repro --quick`.
# Where a name or a key changed on purpose, CHANGED is a sed script that makes both alike in texts and JSON;
# the checksums of the files that it changes are then left out.
# Usage: tests/same_as.sh OLD NEW SWARM DIRECTORY, three programs and a directory that does not exist yet; SEEDS=200 FROM=0
set -euo pipefail

if [ $# -ne 4 ]; then
    echo "usage: tests/same_as.sh OLD NEW SWARM DIRECTORY" >&2
    exit 2
fi
old=$(realpath "$1") new=$(realpath "$2") swarm=$(realpath "$3") out=$(realpath -m "$4")
seeds=${SEEDS:-200} from=${FROM:-0} longest=${LONGEST:-20}
mkdir "$out"

# run PROGRAM SCENARIO THREADS SECONDS: the status, what was printed, and the run's files, in the directory `result`.
run() {
    rm -rf result
    mkdir result
    local status=0
    timeout "$4" "$1" run "$2" --quiet --threads "$3" --out result/run >result/stdout 2>result/stderr || status=$?
    echo "$status" >result/status
    # Times by the clock.
    find result -name manifest.json -exec sed -i '/"wall_seconds"/d' {} +
    sed -i '/packet-hops\/s/d' result/stderr
    if [ -n "${CHANGED:-}" ]; then
        find result -type f ! -name '*.parquet' -exec sed -i -E "$CHANGED" {} +
        find result -name manifest.json -exec sed -i '/"xxh128"/d; /"bytes"/d' {} +
    fi
}

compared=0 refused=0 long=0
both() {
    local scenario=$1 threads
    for threads in 1 2 5; do
        run "$old" "$scenario" "$threads" "$longest"
        if [ "$(cat result/status)" = 124 ]; then
            long=$((long + 1))
            return
        fi
        rm -rf before
        mv result before
        run "$new" "$scenario" "$threads" "$((4 * longest))"
        diff --recursive --brief before result || {
            echo "differs: $scenario on $threads threads; see $out" >&2
            exit 1
        }
        compared=$((compared + 1))
        # A scenario that is refused does not depend on threads.
        if [ ! -d result/run ]; then
            refused=$((refused + 1))
            return
        fi
    done
}

examples=$(realpath "$(dirname "$0")/../examples")
cd "$out"
for example in "$examples"/*.toml; do
    both "$example"
done
echo "same as before: examples, $compared runs; $long took longer than $longest s and were not compared"

"$swarm" save "$from" "$seeds" seeds
for scenario in seeds/*/scenario.toml; do
    both "$scenario"
done
echo "same as before: examples and $seeds seeds from $from on, $compared runs, $refused of them refused; $long took longer than $longest s and were not compared"

if [ "${REPRO:-}" = 1 ]; then
    for build in old new; do
        (cd "$examples/.." && "${!build}" repro --quick --out "$out/repro-$build") || [ $? -eq 3 ]
    done
    cmp <(grep -v '"seconds":' "$out/repro-old/results.json") <(grep -v '"seconds":' "$out/repro-new/results.json")
    echo "same as before: results.json of xoff repro --quick"
fi
