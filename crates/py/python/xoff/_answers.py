"""Answers of the verbs that simulate nothing."""

from __future__ import annotations

import html
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _xoff


class Answer:
    """An answer for programs and for people.

    `print(answer)` shows what the command line prints, and a notebook shows its pictures, too.

    Attributes
    ----------
    text
        What the command line prints.
    files
        Name and contents of files that belong to it, such as pictures (SVG).

    """

    def __init__(self, native: _xoff.Answer) -> None:
        self._json = native.json
        self.text: str = native.text
        self.files: dict[str, str] = dict(native.files)

    @cached_property
    def data(self) -> Any:
        """What the command line prints with `--json`: times in ps, sizes in bytes, rates in bit/s."""
        return json.loads(self._json)

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        pictures = "".join(text for name, text in self.files.items() if name.endswith(".svg"))
        return f"<pre>{html.escape(str(self))}</pre>{pictures}"


class Check(Answer):
    """The answer to whether a scenario can deadlock.

    Attributes
    ----------
    verdict
        `"safe"`: it cannot, and `files["certificate.json"]` is the proof. `"can-deadlock"`: it can, and
        `files["witness.toml"]` is a scenario in which it does. `"cycle-without-witness"`: buffers can wait for each
        other in a cycle, and no simulation of it deadlocked.

    """

    def __init__(self, native: _xoff.Answer) -> None:
        super().__init__(native)
        self.verdict: str = self.data["verdict"]["kind"]

    @property
    def deadlock_free(self) -> bool | None:
        """True if it cannot deadlock, False if it can, None if neither is known."""
        return {"safe": True, "can-deadlock": False}.get(self.verdict)
