"""Mutates the state machines, the buffer and the schedulers of ports, and says which mutants no test catches.

Usage: mutants.py CARGO_MUTANTS DIRECTORY [--mutants N|all] [--resume]

The sample is fixed: mutants are ordered by a hash of SEED and their names, and the first N are tried. So a
smaller sample is part of a larger one, and a change of one function leaves the rest of the sample alone.
Each mutant is tried in stages, the cheap tests first; only survivors go on to the next stage.

Survivors must stand in tests/mutants.toml, with the reason why no test can or should catch them. Status 1 says
that another one survived, or that an entry of the list is not a mutant any more or is caught.

DIRECTORY holds a copy of the tree that mutants are built in, its build, and results.json. `--resume` keeps what
an earlier call has caught, and tries survivors, timeouts and the rest.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARGUED = ROOT / "tests" / "mutants.toml"
SEED = "xoff-1"
SWITCH = ("arbiter", "buffer", "leaves", "port")
FILES = ["crates/schemes/src/**", *(f"crates/sim/src/switch/{name}.rs" for name in SWITCH)]
# What a scheme says of itself, reads from a scenario and works out for a link is not its state machine.
EXCLUDED = [
    f"crates/schemes/src/**/{name}"
    for name in ("keys.rs", "report.rs", "size.rs", "size/**", "resolve.rs", "describe.rs", "fabric.rs")
]

# Tests of xoff-schemes that take from seconds to a minute: they come in the second stage.
SLOW = ["explore::", "iterations_approach", "nothing_starves", "no_more_is_outstanding"]
NAMESAKE = "namesake"
STAGES = [
    # name, package of the mutants, packages of the tests, arguments of cargo test, arguments of the tests
    ("schemes-quick", "xoff-schemes", ["xoff-schemes"], ["--lib"], [arg for s in SLOW for arg in ("--skip", s)]),
    # Of the tests of both worlds those that are called as the mutant's file or folder.
    ("schemes-namesake", "xoff-schemes", ["xoff-sim", "xoff-zeropod"], NAMESAKE, []),
    ("schemes-slow", "xoff-schemes", ["xoff-schemes"], ["--lib"], SLOW),
    ("schemes-plan", "xoff-schemes", ["xoff-plan"], ["--lib", "--tests"], []),
    ("schemes-all", "xoff-schemes", ["xoff-sim", "xoff-zeropod"], ["--lib", "--tests"], []),
    ("sim-own", "xoff-sim", ["xoff-sim"], ["--lib"], []),
    ("sim-all", "xoff-sim", ["xoff-sim"], ["--lib", "--tests"], []),
]
OUTCOMES = ("caught", "timeout", "missed", "unviable")


def copy_tree(to):
    """What git tracks or does not ignore, in `to`; unchanged files keep their times, so they are not built again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, to / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)
    for path in sorted(to.rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(to)) not in names:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def list_mutants(tool, tree):
    """Mutants by key. A key has no line number, so it outlives edits elsewhere in its file."""
    globs = [arg for file in FILES for arg in ("--file", file)] + [arg for file in EXCLUDED for arg in ("--exclude", file)]
    out = subprocess.run(
        [tool, "mutants", "--dir", tree, "--workspace", "--list", "--json", *globs], check=True, capture_output=True
    )
    mutants, seen = {}, collections.Counter()
    for mutant in json.loads(out.stdout):
        what = re.sub(r"^\S+?:\d+:\d+: ", "", mutant["name"])
        key = f"{mutant['file']}: {what}"
        seen[key] += 1
        mutants[key if seen[key] == 1 else f"{key} (number {seen[key]})"] = mutant
    return mutants


def sample(mutants, number):
    order = sorted(mutants, key=lambda key: hashlib.sha256(f"{SEED} {key}".encode()).digest())
    return order if number == "all" else order[: int(number)]


def namesakes(file):
    """Tests of both worlds for a file: `bifrost` and `bifrost_faults` for all of `flow_control/bifrost/`."""
    names = [path.stem for path in ROOT.glob("crates/*/tests/*.rs") if path.parts[-3] in ("sim", "zeropod")]
    for part in Path(file).with_suffix("").parts[3:]:
        found = sorted(name for name in names if name == part or name.startswith(part + "_"))
        if found:
            return found
    return []


def parts(stage, mutants, keys):
    """A stage in parts that take the same tests, and the mutants of each."""
    if stage[3] != NAMESAKE:
        return [(stage, keys)] if keys else []
    by_tests = collections.defaultdict(list)
    for key in keys:
        by_tests[tuple(namesakes(mutants[key]["file"]))].append(key)
    return [
        ((f"{stage[0]}-{tests[0]}", *stage[1:3], [f"--test={test}" for test in tests], stage[4]), keys)
        for tests, keys in sorted(by_tests.items())
        if tests
    ]


def run_stage(tool, directory, stage, mutants, keys, results):
    """Tries mutants with the tests of a stage, and enters what became of them into `results`."""
    name, package, packages, cargo_args, test_args = stage
    out = directory / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names = {mutants[key]["name"]: key for key in keys}
    files = sorted({mutants[key]["file"] for key in keys})
    # In cargo-mutants 27.1.0 mutants of the genre StructField pass by filters of names, but none passes by this list.
    others = [mutant["name"] for mutant in mutants.values() if mutant["file"] in files and mutant["name"] not in names]
    (out / "mutants.out").mkdir()
    (out / "mutants.out" / "previously_caught.txt").write_text("".join(f"{name}\n" for name in others))
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(directory / "build"),
        "CARGO_INCREMENTAL": "1",
        # The same random cases for each mutant; a failure need not be shrunk or remembered.
        "PROPTEST_RNG_SEED": "1",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
    }
    command = [tool, "mutants", "--dir", directory / "tree", "--in-place", "--no-config", "--iterate", "--output", out]
    command += [arg for file in files for arg in ("--file", file)]
    command += ["--workspace", "--profile", "mutants", "--no-shuffle"]
    # Without mutants only the tests of the mutants' own package would run.
    own = packages == [package]
    command += ["--minimum-test-timeout", "60"] if own else ["--baseline", "skip", "--timeout", "1200"]
    command += [arg for package in packages for arg in ("--test-package", package)]
    command += [f"--cargo-arg={arg}" for arg in ["--locked", *cargo_args]]
    command += [f"--cargo-test-arg={arg}" for arg in (["--", *test_args] if test_args else [])]
    print(f"\n{name}: {len(keys)} mutants", flush=True)
    status = subprocess.run(command, env=environment).returncode
    if status not in (0, 2, 3):
        sys.exit(f"cargo mutants ended with status {status}: see {out}/mutants.out/log")
    for outcome in OUTCOMES:
        for line in (out / "mutants.out" / f"{outcome}.txt").read_text().splitlines():
            if line in names:
                results[names[line]] = {"outcome": outcome, "stage": name}
    (directory / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True))


def table(results, keys):
    """A row for each file, in Markdown."""
    rows = collections.defaultdict(collections.Counter)
    for key in keys:
        for row in (key.split(": ")[0], "all"):
            rows[row][results[key]["outcome"]] += 1
    lines = ["| file | tried | caught | timeout | missed | unviable |", "|---|---|---|---|---|---|"]
    for row in [*sorted(set(rows) - {"all"}), "all"]:
        counts = rows[row]
        cells = [sum(counts.values()), *(counts[outcome] for outcome in OUTCOMES)]
        lines.append(f"| {row} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def faults(results, mutants, keys):
    """Why the list and what survived do not agree."""
    argued = {entry["mutant"]: entry["why"] for entry in tomllib.loads(ARGUED.read_text()).get("argued", [])}
    for key in keys:
        if results[key]["outcome"] == "missed" and key not in argued:
            yield f"no test catches: {key}"
        elif results[key]["outcome"] != "missed" and key in argued:
            yield f"tests/mutants.toml argues a mutant that is {results[key]['outcome']}: {key}"
    for key in argued:
        if key not in mutants:
            yield f"tests/mutants.toml names a mutant that does not exist: {key}"
        if not argued[key].strip():
            yield f"tests/mutants.toml gives no reason: {key}"


def main():
    parser = argparse.ArgumentParser(usage="mutants.py CARGO_MUTANTS DIRECTORY [--mutants N|all] [--resume]")
    parser.add_argument("tool", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mutants", default="300")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    if args.mutants != "all" and not args.mutants.isdecimal():
        sys.exit(f"MUTANTS={args.mutants}: a number of mutants, or `all`")
    directory = args.directory.resolve()
    copy_tree(directory / "tree")
    # An interrupted build can leave incremental files that no later one links: every mutant looks unviable then.
    shutil.rmtree(directory / "build" / "mutants" / "incremental", ignore_errors=True)
    mutants = list_mutants(args.tool, directory / "tree")
    keys = sample(mutants, args.mutants)
    print(f"{len(keys)} of {len(mutants)} mutants")

    past = directory / "results.json"
    results = json.loads(past.read_text()) if args.resume and past.exists() else {}
    results = {key: result for key, result in results.items() if result["outcome"] in ("caught", "unviable")}
    for stage in STAGES:
        todo = [key for key in keys if mutants[key]["package"] == stage[1] and results.get(key, {}).get("outcome") in (None, "missed")]
        for part, some in parts(stage, mutants, todo):
            run_stage(args.tool, directory, part, mutants, some, results)

    print("\n" + table(results, keys) + "\n")
    wrong = list(faults(results, mutants, keys))
    print("\n".join(wrong) or "every mutant is caught by a test, or argued in tests/mutants.toml")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
