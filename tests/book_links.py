"""The book has no link to a file that it does not contain, and names that file instead."""

import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))

from book_links import rewrite  # noqa: E402


def main():
    for page, folder, book in [
        ("[CHECK.md](../CHECK.md#limits)", "howto", "[CHECK.md](../CHECK.md#limits)"),
        ("[mdBook](https://example.org/), [below](#below)", "", "[mdBook](https://example.org/), [below](#below)"),
        ("![A cycle](cycle.svg)", "", "![A cycle](cycle.svg)"),
        ("the [README](../README.md)", "", "the README (`README.md`)"),
        ("[CONTRIBUTING.md](../CONTRIBUTING.md#speed)", "", "`CONTRIBUTING.md`"),
        ("[`wrong.rs`](../../crates/plan/tests/wrong.rs)", "howto", "`crates/plan/tests/wrong.rs`"),
        ("[`traffic[0]`](../examples/moe.toml)", "", "`traffic[0]` (`examples/moe.toml`)"),
    ]:
        assert rewrite(page, folder) == book, (page, rewrite(page, folder))

    pages = changed = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        folder = page.parent.relative_to(ROOT / "docs").as_posix()
        text = page.read_text()
        book = rewrite(text, folder)
        for target in re.findall(r"\]\(([^)\s]+)\)", book):
            if not re.match(r"[a-z]+:|#", target):
                path = posixpath.normpath(posixpath.join("docs", folder, target))
                assert path.startswith("docs/"), f"{page}: {target}"
        pages += 1
        changed += book != text
    assert pages > 30 and changed > 5, (pages, changed)
    print(f"{changed} of {pages} pages of the book name files outside docs/")


if __name__ == "__main__":
    main()
