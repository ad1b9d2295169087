"""Arguments of Python's types, or a ScenarioError that names the argument."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ._errors import ScenarioError


def refuse(what: str, value: object, expected: str) -> NoReturn:
    """Say that a value of an argument is not possible, and what is."""
    raise ScenarioError(f"{what} = {value!r} is not possible", key=what, remedy=f"give {expected}")


def path(what: str, value: object) -> Path:
    """Return a path, absolute so that it stays the same."""
    if isinstance(value, str) and value and "\0" not in value:
        return Path(value).absolute()
    if isinstance(value, os.PathLike) and isinstance(os.fspath(value), str):
        return Path(value).absolute()
    refuse(what, value, "a path")


def text(what: str, value: object) -> str:
    """Return a text."""
    return value if isinstance(value, str) else refuse(what, value, "a text")


def mapping(what: str, value: object) -> Mapping[Any, Any]:
    """Return a dictionary whose keys are texts."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    refuse(what, value, "a dictionary with texts as keys")


def whole(what: str, value: object, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`."""
    expected = f"a whole number from {least:,} to {most:,}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        refuse(what, value, expected)
    number = int(value.__index__())
    return number if least <= number <= most else refuse(what, value, expected)


def maybe(what: str, value: object, least: int, most: int) -> int | None:
    """Return a whole number, or None."""
    return None if value is None else whole(what, value, least, most)


def name(what: str, value: object) -> str:
    """Return a name that a directory can have."""
    found = text(what, value)
    if found in ("", ".", "..") or any(c in found for c in "/\\\0") or len(found.encode()) > 200:
        refuse(what, value, "a name of 1 to 200 bytes without slashes")
    return found


def ci95(interval: object) -> bool:
    """Whether an interval is the confidence interval, and not the range."""
    return (
        interval == "ci95" if interval in ("range", "ci95") else refuse("interval", interval, '"range" or "ci95"')
    )
