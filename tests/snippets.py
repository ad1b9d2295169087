"""Runs the Python and SQL blocks of README.md and docs, as readers of run directories would.

Usage: snippets.py XOFF DIRECTORY

The comment before a block says which runs it reads (`first COMMAND`), which this binary of
xoff makes, below the directory; or `python`, for one that makes them by the Python package; or
`not run`, and why. A statement that gives no row is an error: it reads nothing.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?:<!-- test:(?P<test>[^>]*?)-->\n)?^```(?P<language>python|sql)\n(?P<text>.*?)^```$", re.M | re.S)


def run(xoff, block):
    """Makes the runs of a block in the current directory, and reads them as it says."""
    test = (block["test"] or "").strip()
    commands = re.findall(r"^first xoff (.*)$", test, re.M)
    assert commands or test == "python", "no `first` line"
    for command in commands:
        subprocess.run([xoff, *shlex.split(command)], check=True, capture_output=True)
    if block["language"] == "python":
        subprocess.run([sys.executable, "-W", "error", "-c", block["text"]], check=True, stdout=subprocess.DEVNULL)
    else:
        for statement in duckdb.extract_statements(block["text"]):
            assert duckdb.execute(statement).fetchone(), f"no row: {statement.query}"


def main():
    xoff, folder = (Path(a).resolve() for a in sys.argv[1:3])
    count = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        fences = len(re.findall(r"^```(?:python|sql)$", text, re.M))
        blocks = list(BLOCK.finditer(text))
        assert len(blocks) == fences, f"{page}: {fences} blocks"
        for block in blocks:
            if (block["test"] or "").strip().startswith("not run: "):
                continue
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            os.symlink(ROOT / "examples", folder / "examples")
            os.chdir(folder)
            where = f"{page.relative_to(ROOT)}:{text[: block.start('text')].count(chr(10))}"
            try:
                run(xoff, block)
            except (AssertionError, duckdb.Error, subprocess.CalledProcessError) as error:
                sys.exit(f"{where}: {error}\n{getattr(error, 'stderr', None) or ''}")
            os.chdir(ROOT)
            count += 1
    assert count > 3, count
    print(f"{count} blocks of Python and SQL read what xoff writes")


if __name__ == "__main__":
    main()
