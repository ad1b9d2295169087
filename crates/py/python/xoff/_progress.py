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

Tell = Callable[[float, str], None]


def _in_notebook() -> bool:
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def _bar(done: float, text: str) -> str:
    full = round(min(max(done, 0.0), 1.0) * WIDTH)
    return f"{'█' * full}{'░' * (WIDTH - full)} {done:4.0%}  {text}"


@contextlib.contextmanager
def bar(wanted: bool | None) -> Iterator[Tell | None]:
    """Give a function that shows a part (0 to 1) and a state in words, or None if nothing is to be shown.

    Without a wish a bar is shown in notebooks and on terminals.
    """
    notebook = _in_notebook()
    if wanted is False or (wanted is None and not notebook and not sys.stderr.isatty()):
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
            sys.stderr.write(f"\r\x1b[K{_bar(done, text)}")
            sys.stderr.flush()
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
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
