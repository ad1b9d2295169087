"""Progress of long work: a bar on a terminal and in a notebook."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

#: Shorter work shows no bar, in seconds.
PATIENCE = 0.5
WIDTH = 30

Tell = Callable[[float, str], object]
#: Whether to show a bar, or what to call instead.
Progress = bool | Tell | None


def _in_notebook() -> bool:
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _bar(done: float, text: str) -> str:
    full = round(min(max(done, 0.0), 1.0) * WIDTH)
    return f"{'█' * full}{'░' * (WIDTH - full)} {done:4.0%}  {text}"


@contextlib.contextmanager
def bar(wanted: Progress) -> Iterator[Tell | None]:
    """Give a function that shows a part (0 to 1) and a state in words, or None if nothing is to be shown.

    Without a wish a bar is shown in notebooks and on terminals.
    """
    if callable(wanted):
        yield wanted
        return
    notebook = _in_notebook()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if wanted is False or (wanted is None and not notebook and not terminal) or sys.stderr is None:
        yield None
        return
    began = time.monotonic()
    handle: Any = None
    shown = False

    def tell(done: float, text: str) -> None:
        nonlocal handle, shown
        if time.monotonic() - began < PATIENCE:
            return
        if not notebook:
            _write(f"\r\x1b[K{_bar(done, text)}")
        else:
            from IPython.display import display

            line = {"text/plain": _bar(done, text)}
            if handle is None:
                handle = display(line, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                handle.update(line, raw=True)
        shown = True

    try:
        yield tell
    finally:
        if shown and notebook:
            handle.update({"text/plain": ""}, raw=True)
        elif shown:
            _write("\r\x1b[K")


def _write(text: str) -> None:
    """Write to standard error, if it is still there: a bar must not end the work."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
