"""Scenarios."""

from __future__ import annotations

import html
import json
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _check, _xoff
from ._answers import Answer, Check
from ._errors import ScenarioError
from ._progress import Progress, bar
from ._run import Run, Temporary

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
        return cls(_xoff.Scenario.load(_given("path", path)))

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
        text = _xoff.toml_document(dict(_check.mapping("tables", tables)))
        return cls.from_toml(text, name=name, directory=directory)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", directory: str | Path = ".") -> Scenario:
        """Make a scenario of the text of a scenario file. The parameters are those of `from_dict`."""
        name, text = _check.name("name", name), _check.text("text", text)
        # Without a directory no file is named.
        place = Path() if directory == "." else _check.path("directory", directory)
        return cls(_xoff.Scenario.of_text(name, text, place))

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
        if not isinstance(key, str):
            if value is not _NOTHING:
                _check.refuse("value", value, "no value beside a dictionary of keys")
            return Scenario(self._native.set(keys(_check.mapping("key", key))))
        if value is _NOTHING:
            raise ScenarioError(f"`{key}` has no value", key=key, remedy=f'such as set("{key}", value)')
        return Scenario(self._native.set(keys({key: value})))

    def topo(self) -> Answer:
        """Show the network: devices, links, buffers and headroom (`xoff topo`)."""
        return Answer(self._native.topo())

    def traffic(self) -> Answer:
        """Show the traffic: flows, sizes, and the load of each link (`xoff traffic`)."""
        return Answer(self._native.traffic())

    def size(self) -> Answer:
        """Find the links whose buffers can overflow (`xoff size --scenario`)."""
        return Answer(self._native.size())

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        """The `[[variant]]` tables: for each name the keys that it sets, as `Grid` takes them."""
        return {
            name: {key: tomllib.loads(f"x = {text}")["x"] for key, text in set_}
            for name, set_ in self._native.variants()
        }

    def check(
        self, *, failures: int | str | None = None, out: str | Path | None = None, progress: Progress = None
    ) -> Check:
        """Decide without a simulation of the scenario whether it can deadlock (`xoff check`).

        Parameters
        ----------
        failures
            None: the routes of the flows, or all routes of a scenario without traffic. 0: all routes between all
            hosts. "links=2,switches=1": also with up to two links, or one switch, down at the same time; 1 is
            "links=1".
        out
            Directory for the proof or the example, and the pictures.
        progress
            Whether to show a bar; without a wish in notebooks and on terminals. A function gets the part that is done
            (0 to 1) and the state in words about 20 times a second, and ends the work by returning False.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C; there is no result.

        """
        if isinstance(failures, str) and not re.fullmatch(
            r"(links|switches)=[0-3](,(links|switches)=[0-3])?", failures
        ):
            _check.refuse("failures", failures, "a number of links, or a text such as 'links=2,switches=1'")
        if failures is not None:
            failures = str(failures if isinstance(failures, str) else _check.whole("failures", failures, 0, 3))
        with bar(progress) as tell:
            return Check(self._native.check(failures, None if out is None else _check.path("out", out), tell))

    def verify(self, certificate: str | Path) -> str:
        """Verify that a `certificate.json` of `check` proves this scenario safe; return the result in words."""
        return self._native.verify(_check.path("certificate", certificate)).rstrip("\n")

    def run(
        self,
        *,
        threads: int | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        overwrite: bool = False,
        capture: str | Iterable[str] = (),
        capture_bytes: int | None = None,
        progress: Progress = None,
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
        overwrite
            Whether to replace an older run in that directory.
        capture
            Ports whose packets are captured in `capture.pcapng`: a port (`"S0.0:3"`), a device, `"switches"`, `"all"`,
            or several.
        capture_bytes
            Store at most this many bytes of each packet, 14 to 65,535.
        progress
            Whether to show a bar; without a wish in notebooks and on terminals. A function gets the part that is done
            (0 to 1) and the state in words about 20 times a second, and ends the work by returning False.

        Raises
        ------
        ScenarioError
            The scenario is invalid.
        ResultsError
            The results cannot be written, or the directory already contains a run.

        """
        if overwrite and out is None:
            raise ScenarioError(
                "overwrite needs out", key="overwrite", remedy="give the directory of the run as out"
            )
        scenario = self if seed is None else self.set("run.seed", seed)
        threads = _check.maybe("threads", threads, 1, 1024)
        capture_bytes = _check.maybe("capture_bytes", capture_bytes, 14, 65_535)
        ports = [capture] if isinstance(capture, str) else capture
        if not isinstance(ports, Iterable) or isinstance(ports, bytes):
            _check.refuse("capture", capture, "a port, or a list of them")
        ports = [_check.text("capture", port) for port in ports]
        if capture_bytes is not None and not ports:
            _check.refuse("capture_bytes", capture_bytes, "ports as capture, too")
        # It stays until the run is opened.
        owner = Temporary() if out is None else None
        place = _check.path("out", out) if owner is None else owner.base / self.name
        with bar(progress) as tell:
            remarks = scenario._native.run(place, bool(overwrite), threads, ports, capture_bytes, tell)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return Run(place)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, self._native.parts()

    def __copy__(self) -> Scenario:
        return self

    def __deepcopy__(self, _: object) -> Scenario:
        # It never changes.
        return self

    def __repr__(self) -> str:
        set_ = "".join(f", {key}={value}" for key, value in self._native.overrides)
        return f"<xoff.Scenario {self.name}{set_}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}\n{html.escape(str(self.topo()))}</pre>"


def _given(what: str, path: object) -> Path:
    """Return a path as it was given: errors name it so."""
    _check.path(what, path)
    return Path(str(path))


def _restored(*parts: Any) -> Scenario:
    """Return a scenario of the parts of another process."""
    return Scenario(_xoff.Scenario.of_parts(*parts))


def examples() -> list[str]:
    """Return the names of the scenarios that come with xoff."""
    return sorted(name for name, _ in _xoff.examples())


def example(name: str) -> Scenario:
    """Return a scenario that comes with xoff, such as `"bcube-deadlock"`.

    Raises
    ------
    ScenarioError
        There is no such example.

    """
    texts = dict(_xoff.examples())
    if _check.text("name", name) not in texts:
        raise ScenarioError(f"there is no example {name!r}", remedy=f"the examples are {', '.join(texts)}")
    return Scenario.from_toml(texts[name], name=name)
