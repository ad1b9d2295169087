"""A preprocessor of mdBook: links that lead out of docs/ become the path of their file.

In the repository pages link to README.md, examples and source files by their
relative paths. The book has only the pages of docs/.
"""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")


def rewrite(text, folder):
    """The text of a page in this folder of docs/, without links out of docs/."""

    def link(match):
        label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path = posixpath.normpath(posixpath.join("docs", folder, target.split("#")[0]))
        if path.startswith("docs/"):
            return match.group(0)
        # A label that is the end of the path says nothing more.
        return f"`{path}`" if f"/{path}".endswith(f"/{label.strip('`')}") else f"{label} (`{path}`)"

    return LINK.sub(link, text)


def chapters(items):
    """Every chapter below these items of the book."""
    for item in items:
        if chapter := isinstance(item, dict) and item.get("Chapter"):
            yield chapter
            yield from chapters(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:  # any renderer
        return
    _, book = json.load(sys.stdin)
    for chapter in chapters(book["items"]):
        if chapter["path"]:
            chapter["content"] = rewrite(chapter["content"], posixpath.dirname(chapter["path"]))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
