"""Chunks of a store through an engine: anything with the interface of `concurrent.futures`."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future
from queue import Empty, SimpleQueue

from . import _xoff
from ._errors import Error, ResultsError
from ._progress import Tell

#: Distance of looks at the engine and at Ctrl-C, in seconds.
PERIOD = 0.2
#: How long a chunk stays away that somebody else works on, in seconds.
BUSY = 1.0
#: Distance of looks at the store where nothing is left to be sent, in seconds.
LOOK = 1.0
#: How often a chunk may lose its worker.
RETRIES = 10

#: Runs that were made, runs that failed, and chunks that somebody else works on.
Answer = tuple[int, int, list[int]]


def xoff_chunk(place: str, chunk: int, jobs: int, lease: str) -> Answer:
    """Make a chunk of a store, on a worker of the engine. Only numbers come back: the results are in the store."""
    return _xoff.work(place, jobs, lease, None, [chunk], None)


class Engine:
    """Gives the chunks of a store to an engine, few in parallel, until all are done.

    Parameters
    ----------
    place
        The store.
    executor
        The engine. Its workers have the same version of xoff, and reach the store.
    window
        Tells how many chunks the engine gets in parallel.
    alive
        Tells why the engine has ended, or None.

    """

    def __init__(
        self,
        place: str,
        executor: Executor,
        window: Callable[[], int],
        *,
        jobs: int,
        lease: str,
        until: str | None,
        alive: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._place, self._executor, self._window, self._alive = place, executor, window, alive
        self._jobs, self._lease, self._until = jobs, lease, until
        self._flying: dict[Future[Answer], int] = {}
        self._back: SimpleQueue[Future[Answer]] = SimpleQueue()
        self._lost: dict[int, int] = {}
        self._failed = 0

    def run(self, tell: Tell | None) -> None:
        """Make every chunk. After an error or Ctrl-C nothing more is sent; what is done stays done."""
        runs: dict[int, int] = {}
        todo: deque[int] = deque()
        later: deque[tuple[float, int]] = deque()
        done = needed = 0
        looked = -LOOK
        try:
            while True:
                # A rule asks for more chunks only when others are done.
                if not (todo or later) and (not self._flying or time.monotonic() >= looked + LOOK):
                    chunks, needed, done = _xoff.open_chunks(self._place, self._until)
                    looked = time.monotonic()
                    runs.update(chunks)
                    at_work = set(self._flying.values())
                    todo.extend(chunk for chunk, _ in chunks if chunk not in at_work)
                    if not (todo or self._flying):
                        return
                while later and later[0][0] <= time.monotonic():
                    todo.append(later.popleft()[1])
                window = self._window()
                if why := self._alive():
                    raise _over(why)
                while todo and len(self._flying) < window:
                    self._send(todo.popleft())
                for chunk, busy in self._arrived():
                    if busy:
                        later.append((time.monotonic() + BUSY, chunk))
                    else:
                        done = min(done + runs[chunk], needed)
                if tell is not None:
                    failed = f", {self._failed:,} failed" if self._failed else ""
                    text = f"{done:,} of {needed:,} runs{failed}, {len(self._flying):,} chunks at work"
                    if tell(done / max(needed, 1), text) is False:
                        raise KeyboardInterrupt
        finally:
            for future in self._flying:
                future.cancel()

    def _send(self, chunk: int) -> None:
        try:
            future = self._executor.submit(xoff_chunk, self._place, chunk, self._jobs, self._lease)
        except Exception as error:
            raise _over(f"takes no more work: {error!r}") from error
        self._flying[future] = chunk
        future.add_done_callback(self._back.put)

    def _arrived(self) -> Iterable[tuple[int, bool]]:
        """Wait a moment; give the chunks that came back, and whether somebody else works on them."""
        found = []
        with contextlib.suppress(Empty):
            found.append(self._back.get(timeout=PERIOD))
            while True:
                found.append(self._back.get_nowait())
        for future in found:
            chunk = self._flying.pop(future)
            try:
                _, failed, busy = future.result()
            except Error:
                # It would come again on every worker.
                raise
            except (Exception, CancelledError) as error:
                self._lost[chunk] = self._lost.get(chunk, 0) + 1
                if self._lost[chunk] > RETRIES:
                    raise _over(f"lost the chunk {chunk} {self._lost[chunk]} times: {error!r}") from error
                yield chunk, True
                continue
            self._failed += failed
            yield chunk, bool(busy)


def _over(why: str) -> ResultsError:
    remedy = "start the engine again, and repeat the call with the same store: what is done stays done"
    return ResultsError(f"the engine {why}", remedy=remedy)
