"""Scenarios."""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _xoff
from ._answers import Answer, Check
from ._errors import ScenarioError
from ._progress import bar
from ._run import Run, temporary

#: No value was given.
_NOTHING: Any = ...


def keys(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Turn keys and values into the form of `--set`."""
    return [(key, _xoff.toml_value(value, key)) for key, value in values.items()]


class Scenario:
    """A network, its flow control and its traffic. It never changes: `set` returns a new one."""

    def __init__(self, native: _xoff.Scenario) -> None:
        self._native = native

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """Read a scenario file (TOML).

        Raises
        ------
        ScenarioError
            The file cannot be read, or a key or value in it is wrong.

        """
        return cls(_xoff.Scenario.load(Path(path)))

    @classmethod
    def from_dict(
        cls, tables: Mapping[str, Any], *, name: str = "scenario", directory: str | Path = "."
    ) -> Scenario:
        """Make a scenario of a dictionary of tables, as a scenario file has them.

        Quantities carry units, as in a file: `{"topology": {"link": {"rate": "100Gbps", "delay": "1us"}}}`.

        Parameters
        ----------
        tables
            The tables by name; `traffic` is a list.
        name
            The name that results have.
        directory
            Where files are that the scenario names.

        Raises
        ------
        ScenarioError
            A key or value is wrong. Its line is that of the tables written as TOML.

        """
        text = _xoff.toml_document(dict(tables))
        return cls(_xoff.Scenario.of_text(name, text, Path(directory)))

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", directory: str | Path = ".") -> Scenario:
        """Make a scenario of the text of a scenario file. The parameters are those of `from_dict`."""
        return cls(_xoff.Scenario.of_text(name, text, Path(directory)))

    @property
    def name(self) -> str:
        """The name that results have."""
        return self._native.name

    @property
    def overrides(self) -> dict[str, str]:
        """The keys that were set, with their values as TOML."""
        return dict(self._native.overrides)

    @property
    def warnings(self) -> list[str]:
        """Settings that may have another effect than expected."""
        return self._native.resolved()[1]

    def to_dict(self) -> dict[str, Any]:
        """Return every key with its value, defaults included: times in ps, sizes in bytes, rates in bit/s."""
        scenario: dict[str, Any] = json.loads(self._native.resolved()[0])
        return scenario

    def set(self, key: str | Mapping[str, Any], value: Any = _NOTHING) -> Scenario:
        """Return the same scenario with a key set to a value, or with several keys of a dictionary.

        A key is such as `"flow_control.scheme"` or `"traffic.0.load"`. A value may be a table (a dictionary), which
        replaces all of its keys.

        Raises
        ------
        ScenarioError
            A key is unknown or a value is wrong, with `.key` and `.remedy`.

        """
        if isinstance(key, str) and value is _NOTHING:
            raise ScenarioError(f"`{key}` has no value", key=key, remedy=f'such as set("{key}", value)')
        if not isinstance(key, str | Mapping):
            raise ScenarioError(
                f"{key!r} is not a key", remedy='such as "traffic.0.load", or a dictionary of keys'
            )
        return Scenario(self._native.set(keys({key: value} if isinstance(key, str) else key)))

    def topo(self) -> Answer:
        """Show the network: devices, links, buffers and headroom (`xoff topo`)."""
        return Answer(self._native.topo())

    def traffic(self) -> Answer:
        """Show the traffic: flows, sizes, and the load of each link (`xoff traffic`)."""
        return Answer(self._native.traffic())

    def size(self) -> Answer:
        """Find the links whose buffers can overflow (`xoff size --scenario`)."""
        return Answer(self._native.size())

    def check(
        self, *, failures: int | None = None, out: str | Path | None = None, progress: bool | None = None
    ) -> Check:
        """Decide without a simulation of the scenario whether it can deadlock (`xoff check`).

        Parameters
        ----------
        failures
            0: all routes between all hosts instead of those of the flows. 1: also with each single link failed.
        out
            Directory for the proof or the example, and the pictures.
        progress
            Whether to show a bar; without a wish in notebooks and on terminals.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C; there is no result.

        """
        if failures not in (None, 0, 1):
            raise ScenarioError(f"failures = {failures!r} is not possible", key="failures", remedy="type 0 or 1")
        with bar(progress) as tell:
            return Check(self._native.check(failures, None if out is None else Path(out), tell))

    def verify(self, certificate: str | Path) -> str:
        """Verify that a `certificate.json` of `check` proves this scenario safe; return the result in words."""
        return self._native.verify(Path(certificate)).rstrip("\n")

    def run(
        self,
        *,
        threads: int | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        capture: str | Iterable[str] = (),
        capture_bytes: int | None = None,
        progress: bool | None = None,
    ) -> Run:
        """Simulate the scenario (`xoff run`).

        Ctrl-C ends the run and returns its results until then, with `complete` False. Other Python threads go on
        meanwhile, and the results do not depend on `threads`.

        Parameters
        ----------
        threads
            Threads of the run; without a number 2 for a long run on two cores or more.
        seed
            The same as `set("run.seed", seed)`.
        out
            Directory for the results; without it a temporary one, which `Run.save` copies.
        capture
            Ports whose packets are captured in `capture.pcapng`: a port (`"S0.0:3"`), a device, `"switches"`, `"all"`,
            or several.
        capture_bytes
            Store at most this many bytes of each packet, 14 to 65,535.
        progress
            Whether to show a bar; without a wish in notebooks and on terminals.

        Raises
        ------
        ScenarioError
            The scenario is invalid.
        ResultsError
            The results cannot be written.

        """
        scenario = self if seed is None else self.set("run.seed", seed)
        threads = count("threads", threads, 1024)
        if capture_bytes is not None and not 14 <= capture_bytes <= 65_535:
            remedy = "type a whole number from 14 to 65,535"
            raise ScenarioError(
                f"capture_bytes = {capture_bytes} is not possible", key="capture_bytes", remedy=remedy
            )
        ports = [capture] if isinstance(capture, str) else list(capture)
        owned, place = (None, Path(out)) if out is not None else temporary(self.name)
        try:
            with bar(progress) as tell:
                path, _ = scenario._native.run(place, threads, ports, capture_bytes, tell)
            return Run(path, owned)
        except BaseException:
            if owned:
                shutil.rmtree(owned, ignore_errors=True)
            raise

    def __repr__(self) -> str:
        set_ = "".join(f", {key}={value}" for key, value in self._native.overrides)
        return f"<xoff.Scenario {self.name}{set_}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}\n{html.escape(str(self.topo()))}</pre>"


def count(what: str, number: int | None, most: int) -> int | None:
    """Return a whole number from 1 to `most`, or None."""
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= most):
        return number
    raise ScenarioError(
        f"{what} = {number!r} is not possible", key=what, remedy=f"type a whole number from 1 to {most}"
    )


def examples() -> list[str]:
    """Return the names of the scenarios that come with xoff."""
    return [name for name, _ in _xoff.examples()]


def example(name: str) -> Scenario:
    """Return a scenario that comes with xoff, such as `"bcube-deadlock"`.

    Raises
    ------
    ScenarioError
        There is no such example.

    """
    texts = dict(_xoff.examples())
    if name not in texts:
        raise ScenarioError(f"there is no example {name!r}", remedy=f"the examples are {', '.join(texts)}")
    return Scenario.from_toml(texts[name], name=name)
