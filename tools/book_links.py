"""A preprocessor of mdBook: links that lead out of docs/ lead to the repository.

In the repository pages link to README.md, examples and source files by their
relative paths. The book has only the pages of docs/.
"""

import json
import posixpath
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")


def rewrite(text, folder, base):
    """The text of a page in this folder of docs/, with its links out of docs/ absolute."""

    def link(match):
        target = match.group(1)
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        return match.group(0) if path.startswith("docs/") else f"]({base}{path})"

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
    context, book = json.load(sys.stdin)
    base = context["config"]["preprocessor"]["book-links"]["base"]
    for chapter in chapters(book["items"]):
        if chapter["path"]:
            chapter["content"] = rewrite(chapter["content"], posixpath.dirname(chapter["path"]), base)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
