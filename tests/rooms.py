"""Removes each folder of a protocol with its lines in the registry, and checks that all other code compiles.

    tests/rooms.py DIR [NAME ...]

DIR gets a copy of the last commit and its build. It takes some ten seconds for each folder.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

KINDS = ["flow_control", "congestion_control", "load_balancing", "transport"]

# What others are made of, and why.
NEEDED = {
    "pfc": "other schemes extend it",
    "none": "scenarios of pods have it",
    "pause": "it parses MAC control frames, which schemes of other crates may send",
    "bifrost": "`xoff size` has options for its slots",
    "cbfc": "`xoff size` has options for its credits",
    "portfc": "a count of its queues is printed for networks that are too large to run",
    "nscc": "a part of nscc+rccc",
    "rccc": "a part of nscc+rccc; RUD carries its credits",
    "nscc_rccc": "the registry knows its parts",
    "ugal": "valiant has its paths",
    "tcp": "NDP has its receiver's runs of packets",
}


def run(*command, **kwargs):
    return subprocess.run(command, text=True, capture_output=True, **kwargs)


def rooms(registry: str) -> list[str]:
    """The folders that the lines of a registry name."""
    lines = registry[re.search(r"^registry! \{", registry, re.M).start() :].split("\n}\n")[0]
    code = re.sub(r"//.*", "", lines)
    return list(dict.fromkeys(re.findall(r"(?<![\w:])([a-z]\w*)::", code)))


def without(registry: str, name: str) -> str:
    """A registry without the entries, frames, sizes and imports of a folder."""
    begin = re.search(r"^registry! \{\n", registry, re.M).end()
    end = registry.index("\n}\n", begin) + 1
    entry = r"(?:^ *(?:///|#\[).*\n)*^ *\w+ = \"[^;]*;\n"
    kept = re.sub(entry, lambda m: "" if re.search(rf"\b{name}::", m[0]) else m[0], registry[begin:end], flags=re.M)
    registry = registry[:begin] + kept + registry[end:]
    frame = r"^ *\w+\([\w:]+\) = .*,\n"
    registry = re.sub(frame, lambda m: "" if re.search(rf"\b{name}::", m[0]) else m[0], registry, flags=re.M)
    registry = registry.replace(f"    &{name}::size::ENTRIES,\n", "")
    imports = r"^use super::\{[^}]*\};"
    return re.sub(imports, lambda m: re.sub(rf"\b{name}\b(?:,\s*)?", "", m[0]), registry, flags=re.M)


def compiles_without(tree: Path, kind: str, name: str) -> bool:
    base = tree / "crates/schemes/src" / kind
    edited = {base / "mod.rs": None, base / "registry.rs": None}
    for path in edited:
        edited[path] = path.read_text()
    folder = base / name if (base / name).is_dir() else base / f"{name}.rs"
    aside = tree / "removed"
    folder.rename(aside)
    (base / "mod.rs").write_text(re.sub(rf"^pub mod {name};\n", "", edited[base / "mod.rs"], flags=re.M))
    (base / "registry.rs").write_text(without(edited[base / "registry.rs"], name))
    build = run("cargo", "check", "--quiet", "--locked", "-p", "xoff", "--bins", cwd=tree)
    aside.rename(folder)
    for path, text in edited.items():
        path.write_text(text)
    if build.returncode != 0 and name not in NEEDED:
        print(build.stderr)
    return build.returncode == 0


def main() -> int:
    out, *only = sys.argv[1:]
    tree = Path(out).resolve() / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", tree], input=archive.stdout, check=True)
    whole = run("cargo", "check", "--quiet", "--locked", "-p", "xoff", "--bins", cwd=tree)
    if whole.returncode != 0:
        print(whole.stderr)
        return 1
    wrong = 0
    for kind in KINDS:
        registry = (tree / "crates/schemes/src" / kind / "registry.rs").read_text()
        for name in rooms(registry):
            if only and name not in only:
                continue
            found = compiles_without(tree, kind, name)
            said = "all other code compiles" if found else "other code needs it"
            why = f": {NEEDED[name]}" if name in NEEDED else ""
            bad = found == (name in NEEDED)
            wrong += bad
            print(f"{kind}/{name}: {said}{why}{'  <- WRONG' if bad else ''}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
