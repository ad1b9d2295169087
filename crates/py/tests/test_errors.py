"""Mistakes raise one of the documented exceptions, with the words of the command line, and nothing ends Python."""

import pickle
import re

import pytest
from conftest import ROOT

import xoff
from xoff import _xoff

#: The line of `leaves` in it.
LINE = 12
VICTIMS = ROOT / "examples" / "victims.toml"
BASE = {
    "topology": {
        "kind": "ring",
        "switches": 3,
        "hosts_per_switch": 2,
        "link": {"rate": "100Gbps", "delay": "1us"},
    },
    "run": {"duration": "100us"},
    "traffic": [{"kind": "flow", "src": "H0", "dst": "H2", "size": "1MB"}],
}


def changed(**tables):
    return xoff.Scenario.from_dict({**BASE, **tables})


def scenario():
    return xoff.Scenario.load(VICTIMS)


def closed():
    run = xoff.example("hello").run()
    run.close()
    return run


def damaged(tmp_path):
    run = xoff.example("hello").run().save(tmp_path / "run")
    file = tmp_path / "run" / "flows.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    return run


#: Of each mistake: what is done, the exception, the key and a part of the message.
MISTAKES = {
    "unknown key": (
        lambda _: scenario().set("flow_control.scheme2", "pfc"),
        "ScenarioError",
        "flow_control.scheme2",
        "unknown key `scheme2`",
    ),
    "unknown table": (lambda _: changed(flow={"scheme": "pfc"}), "ScenarioError", "flow", "unknown table `flow`"),
    "unknown scheme": (
        lambda _: scenario().set("flow_control.scheme", "pcf"),
        "ScenarioError",
        "flow_control.scheme",
        "unknown flow control `pcf`",
    ),
    "number without a unit": (
        lambda _: scenario().set("run.duration", 5),
        "ScenarioError",
        "run.duration",
        "5 has no unit",
    ),
    "wrong unit": (lambda _: scenario().set("run.duration", "5kB"), "ScenarioError", "run.duration", "5kB"),
    "number for a rate": (
        lambda _: changed(topology={**BASE["topology"], "link": {"rate": 100, "delay": "1us"}}),
        "ScenarioError",
        "topology.link.rate",
        "100 has no unit",
    ),
    "text for a number": (
        lambda _: changed(topology={**BASE["topology"], "switches": "three"}),
        "ScenarioError",
        "topology.switches",
        "three",
    ),
    "list for a table": (lambda _: changed(run=["100us"]), "ScenarioError", "run", "run"),
    "table for a list": (lambda _: changed(traffic={"kind": "flow"}), "ScenarioError", "traffic", "traffic"),
    "missing key": (
        lambda _: changed(traffic=[{"kind": "flow", "src": "H0", "dst": "H2"}]),
        "ScenarioError",
        "traffic[0].size",
        "size",
    ),
    "unknown host": (
        lambda _: changed(traffic=[{**BASE["traffic"][0], "src": "H99"}]).run(),
        "ScenarioError",
        "traffic[0].src",
        "H99",
    ),
    "negative load": (
        lambda _: scenario().set("traffic.0.load", -1).run(),
        "ScenarioError",
        "traffic[0].load",
        "-1",
    ),
    "absurd size": (
        lambda _: changed(topology={**BASE["topology"], "kind": "ring", "switches": 10**9}).topo(),
        "ScenarioError",
        "topology.switches",
        "the maximum is 2000000 hosts",
    ),
    "no form in a scenario": (
        lambda _: changed(run={"duration": object()}),
        "ScenarioError",
        "run.duration",
        "a value of type object",
    ),
    "a key that is no text": (lambda _: changed(run={1: "100us"}), "ScenarioError", "run", "is not a text"),
    "no value": (lambda _: scenario().set("run.seed", None), "ScenarioError", "run.seed", "NoneType"),
    "too large a number": (lambda _: scenario().set("run.seed", 2**70), "ScenarioError", "run.seed", "64 bits"),
    "no dictionary": (
        lambda _: xoff.Scenario.from_dict([("run", 1)]),
        "ScenarioError",
        "tables",
        "tables = [",
    ),
    "key without a table": (lambda _: scenario().set("load", 0.5), "ScenarioError", None, "is not a complete key"),
    "two keys, one effect": (
        lambda _: scenario().set({"flow_control.xoff": "1MB", "flow_control": {"scheme": "pfc"}}),
        "ScenarioError",
        None,
        "has no effect",
    ),
    "no TOML": (lambda _: xoff.Scenario.from_toml("[topology\nkind = 1"), "ScenarioError", None, "not valid TOML"),
    "missing file": (
        lambda _: xoff.Scenario.load("nope.toml"),
        "ScenarioError",
        None,
        "there is no file nope.toml",
    ),
    "directory for a file": (
        lambda path: xoff.Scenario.load(path),
        "ScenarioError",
        None,
        "is a directory, not a scenario file",
    ),
    "unknown example": (lambda _: xoff.example("nope"), "ScenarioError", None, "there is no example 'nope'"),
    "no threads": (lambda _: scenario().run(threads=0), "ScenarioError", "threads", "threads = 0"),
    "unknown port": (lambda _: scenario().run(capture="S9.9:1"), "ScenarioError", None, "S9.9"),
    "a file in the way": (
        lambda path: (path.joinpath("f").write_text(""), scenario().run(out=path / "f")),
        "ResultsError",
        None,
        "is a file, not a directory",
    ),
    "something else in the way": (
        lambda path: (path.joinpath("f").write_text(""), scenario().run(out=path)),
        "ResultsError",
        None,
        "is not a run directory of xoff",
    ),
    "no run": (lambda path: xoff.Run.open(path), "ResultsError", None, "is not a run directory of xoff"),
    "missing run": (lambda path: xoff.Run.open(path / "nope"), "ResultsError", None, "does not exist"),
    "damaged run": (
        lambda path: (damaged(path), xoff.Run.open(path / "run")),
        "ResultsError",
        None,
        "does not match its checksum",
    ),
    "no grid": (lambda path: xoff.GridRun.open(path), "ResultsError", None, "is not the directory of a grid"),
    "closed run": (lambda _: closed().report(), "ResultsError", None, "closed"),
    "nothing to explain": (
        lambda _: xoff.example("hello").set("measure.explain", False).run().explain(),
        "ResultsError",
        None,
        "measure.explain was not set",
    ),
    "unknown flow": (
        lambda _: scenario().set("measure.explain", True).run().explain(flow=10**6),
        "ResultsError",
        None,
        "1000000",
    ),
    "unknown column": (
        lambda _: xoff.example("hello").run().flows["nope"],
        "ScenarioError",
        "nope",
        "there is no column `nope`",
    ),
    "empty list of values": (
        lambda _: xoff.Grid(scenario(), vary={"traffic.0.load": []}).run(),
        "ScenarioError",
        None,
        "has no values",
    ),
    "a value twice": (
        lambda _: xoff.Grid(scenario(), vary={"traffic.0.load": [0.1, 0.1]}).run(),
        "ScenarioError",
        None,
        "is given twice",
    ),
    "a text for a list": (
        lambda _: xoff.Grid(scenario(), vary={"flow_control.scheme": "pfc"}),
        "ScenarioError",
        "flow_control.scheme",
        "are not a list",
    ),
    "a variant's key": (
        lambda _: xoff.Grid(scenario(), variants={"a": {"flow_control.scheme2": "pfc"}}).run(),
        "ScenarioError",
        "flow_control.scheme2",
        "unknown key `scheme2`",
    ),
    "a negative seed": (lambda _: xoff.Grid(scenario(), seeds=[-1]), "ScenarioError", "seeds", "seeds = -1"),
    "a rate without a unit": (
        lambda _: xoff.size(rate="5", distance="1km"),
        "ScenarioError",
        None,
        "`5` has no unit",
    ),
    "unknown parameter": (
        lambda _: xoff.size(rate="5Gbps", distance="1km", speed=1),
        "ScenarioError",
        "speed",
        "no parameter 'speed'",
    ),
    "unknown name of a scheme": (lambda _: xoff.schemes("nope"), "ScenarioError", None, "unknown scheme `nope`"),
    "unknown experiment": (
        lambda path: xoff.repro("nope", experiments=ROOT / "experiments", out=path),
        "ScenarioError",
        None,
        "nope",
    ),
}


HELLO = xoff.example("hello")

#: Arguments of wrong types, and too much of the right ones.
WRONG = [
    lambda: xoff.Scenario.load(None),
    lambda: xoff.Scenario.load(b"x"),
    lambda: xoff.Scenario.from_dict(None),
    lambda: xoff.Scenario.from_dict([1]),
    lambda: xoff.Scenario.from_toml(None),
    lambda: xoff.Scenario.from_toml("", name="../x"),
    lambda: xoff.Scenario.from_toml("", name=""),
    lambda: HELLO.set({1: 2}),
    lambda: HELLO.set("run.seed"),
    lambda: HELLO.set({"run.seed": 1}, 5),
    lambda: HELLO.run(out=5),
    lambda: HELLO.run(overwrite=True),
    lambda: HELLO.run(capture=5),
    lambda: HELLO.run(capture=[1]),
    lambda: HELLO.run(capture_bytes=20),
    lambda: HELLO.run(capture="all", capture_bytes=20.5),
    lambda: HELLO.run(threads=2**70),
    lambda: HELLO.check(failures=4),
    lambda: HELLO.check(failures="links=many"),
    lambda: HELLO.run().explain(flow=-1),
    lambda: HELLO.run().explain(port=3),
    lambda: HELLO.run().explain(flow=0, port="S0.0:1"),
    lambda: HELLO.run().flows[0],
    lambda: HELLO.run().flows.head("id", -1),
    lambda: xoff.Run.compare([HELLO], HELLO),
    lambda: xoff.Grid("hello"),
    lambda: xoff.Grid(HELLO, vary=["a"]),
    lambda: xoff.Grid(HELLO, variants={"a": 5}),
    lambda: xoff.Grid(HELLO, seeds=5),
    lambda: xoff.Grid(HELLO, seeds=[True]),
    lambda: xoff.Grid(HELLO, seeds=[1, 1]),
    lambda: xoff.Grid(HELLO, seeds=[1]).run(jobs=0),
    lambda: xoff.Grid(HELLO, seeds=[1]).run(resume=True),
    lambda: xoff.Grid(HELLO, seeds=[1]).run().all("../grid"),
    lambda: xoff.Grid(HELLO, seeds=[1]).run().comparison("ci99"),
    lambda: xoff.schemes(3),
    lambda: xoff.example([]),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_argument_of_a_wrong_type_is_a_scenario_error(wrong):
    with pytest.raises(xoff.ScenarioError):
        wrong()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_exception(mistake, tmp_path):
    wrong, kind, key, words = MISTAKES[mistake]
    with pytest.raises(xoff.Error) as caught:
        wrong(tmp_path)
    error = caught.value
    assert type(error).__name__ == kind, error
    assert words in str(error)
    assert kind != "ScenarioError" or error.key == key, error.key
    # It crosses processes whole.
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.remedy) == (type(error), str(error), error.remedy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flow_control.scheme2", "pfc"),
        ("flow_control.scheme", "pcf"),
        ("run.duration", "5"),
        ("traffic.0.load", "-1"),
        ("topology.link.rate", "1Tb"),
        ("flow_control.xoff", "[1]"),
        ("load", "0.5"),
    ],
)
def test_the_words_are_those_of_the_command_line(key, value, command):
    status, _, said = command("run", VICTIMS, "--no-out", "--set", f"{key}={value}")
    assert status == 1
    with pytest.raises(xoff.ScenarioError) as caught:
        xoff.Scenario(scenario()._native.set([(key, value)])).run()
    plain = re.sub(r"[^\w]", "", said)
    assert re.sub(r"[^\w]", "", caught.value.message) in plain
    assert re.sub(r"[^\w]", "", caught.value.remedy) in plain


def test_places_in_files(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(VICTIMS.read_text().replace("leaves = ", "leavez = "))
    with pytest.raises(xoff.ScenarioError) as caught:
        xoff.Scenario.load(path)
    error = caught.value
    assert (error.file, error.line, error.column, error.key) == (str(path), LINE, 1, "topology.leavez")
    assert error.remedy.startswith("did you mean `leaves`?")
    assert str(error).startswith(f"{path}:{LINE}:1: unknown key `leavez`")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("on_thread", [True, False])
def test_a_bug_is_an_exception(on_thread, capfd):
    with pytest.raises(xoff.InternalError, match="bug in xoff: a fault for a test"):
        _xoff._fail(on_thread)
    # Python goes on, and so does xoff.
    assert xoff.example("hello").run().complete


def test_a_failing_callback_ends_the_run(long):
    def progress(done, text):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        long.run(threads=1, progress=progress)


def test_a_full_disk_leaves_nothing(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    full.chmod(0o500)
    try:
        if not _writable(full):
            with pytest.raises(xoff.ResultsError, match="cannot be created"):
                xoff.example("hello").run(out=full / "run")
    finally:
        full.chmod(0o700)
    assert list(full.iterdir()) == []


def _writable(directory):
    try:
        (directory / "probe").write_text("")
        (directory / "probe").unlink()
    except OSError:
        return False
    return True
