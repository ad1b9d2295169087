"""Scenarios: from files, dictionaries and texts, and what is known of them without a simulation."""

import json

import pytest
from conftest import ROOT

import xoff

RING = {
    "topology": {
        "kind": "ring",
        "switches": 3,
        "hosts_per_switch": 2,
        "link": {"rate": "100Gbps", "delay": "1us"},
    },
    "flow_control": {"scheme": "pfc"},
    "run": {"duration": "100us"},
    "traffic": [{"kind": "flow", "src": "H0", "dst": "H2", "size": "1MB"}],
}


def test_the_examples_are_those_of_the_repository():
    assert xoff.examples() == sorted(path.stem for path in (ROOT / "examples").glob("*.toml"))
    for name in xoff.examples():
        assert xoff.example(name).name == name


def test_a_scenario_of_a_file_a_dictionary_and_a_text_is_the_same(tmp_path):
    text = """
        [topology]
        kind = "ring"
        switches = 3
        hosts_per_switch = 2
        link = { rate = "100Gbps", delay = "1us" }
        [flow_control]
        scheme = "pfc"
        [run]
        duration = "100us"
        [[traffic]]
        kind = "flow"
        src = "H0"
        dst = "H2"
        size = "1MB"
    """
    (tmp_path / "net.toml").write_text(text)
    of_file = xoff.Scenario.load(tmp_path / "net.toml")
    assert of_file.name == "net"
    assert of_file.to_dict() == xoff.Scenario.from_dict(RING).to_dict() == xoff.Scenario.from_toml(text).to_dict()
    # Quantities come back in the base units.
    assert (
        of_file.to_dict()["topology"]["link"]["delay"]
        == xoff.Scenario.load(str(tmp_path / "net.toml")).to_dict()["topology"]["link"]["delay"]
    )


def test_a_scenario_never_changes():
    a = xoff.Scenario.from_dict(RING)
    b = a.set("flow_control.scheme", "pyrrha")
    c = b.set({"flow_control.scheme": "none", "traffic.0.size": "2MB"})
    assert (a.overrides, b.overrides) == ({}, {"flow_control.scheme": "pyrrha"})
    assert c.overrides == {"flow_control.scheme": "none", "traffic.0.size": "2MB"}
    assert [s.to_dict()["flow_control"]["scheme"] for s in (a, b, c)] == ["pfc", "pyrrha", "none"]
    whole = b.set("flow_control", {"scheme": "pfc", "xoff": "100kB"})
    assert list(whole.overrides) == ["flow_control"]
    assert whole.to_dict()["flow_control"]["xoff"] is not None


def test_values_are_those_of_the_command_line(command, tmp_path):
    (tmp_path / "net.toml").write_text((ROOT / "examples" / "victims.toml").read_text())
    values = {
        "traffic.0.load": (0.05, "0.05"),
        "measure.explain": (True, "true"),
        "run.seed": (7, "7"),
        "flow_control.scheme": ("bfc", "bfc"),
        "measure.ports": (["S0.0:1", "H0:0"], '["S0.0:1", "H0:0"]'),
    }
    scenario = xoff.Scenario.load(tmp_path / "net.toml").set({key: value for key, (value, _) in values.items()})
    assert scenario.overrides == {key: text for key, (_, text) in values.items()}
    options = [part for key, (_, text) in values.items() for part in ("--set", f"{key}={text}")]
    assert command("run", "net.toml", "--quiet", *options)[0] == 0
    manifest = json.loads((tmp_path / "xoff-runs" / "net" / "manifest.json").read_text())
    assert manifest["scenario"] == scenario.to_dict()


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    scenario = xoff.example("victims").set({"run.seed": numpy.int64(3), "traffic.0.load": numpy.float32(0.5)})
    assert scenario.overrides == {"run.seed": "3", "traffic.0.load": "0.5"}


@pytest.mark.parametrize("verb", ["topo", "traffic"])
def test_answers_are_those_of_the_command_line(verb, command):
    path = ROOT / "examples" / "victims.toml"
    answer = getattr(xoff.Scenario.load(path), verb)()
    assert answer.text == command(verb, path)[1]
    assert answer.data == json.loads(command(verb, path, "--json")[1])
    assert f"<pre>{answer.text[:7]}" in answer._repr_html_()


def test_check_proves_and_refutes(command, tmp_path):
    path = ROOT / "examples" / "bcube-deadlock.toml"
    scenario = xoff.Scenario.load(path)
    check = scenario.check(progress=False)
    assert (check.verdict, check.deadlock_free) == ("can-deadlock", False)
    assert check.data == json.loads(command("check", path, "--json", "--quiet")[1])
    assert "witness.toml" in check.files
    assert "<svg" in check._repr_html_()
    # The witness deadlocks.
    assert xoff.Scenario.from_toml(check.files["witness.toml"]).run().deadlock
    safe = scenario.set("flow_control.scheme", "portfc").check(out=tmp_path / "proof")
    assert safe.deadlock_free is True
    certificate = tmp_path / "proof" / "certificate.json"
    assert certificate.read_text() == safe.files["certificate.json"]
    verified = scenario.set("flow_control.scheme", "portfc").verify(certificate)
    assert verified.startswith("The certificate is valid")
    with pytest.raises(xoff.ScenarioError, match="is not a proof for this scenario"):
        scenario.verify(certificate)
    assert (
        xoff.example("victims").check(failures="links=1,switches=1").data["failures"]["classes"][0]["examined"] > 0
    )


def test_sizes(command):
    answer = xoff.size(rate="400Gbps", distance="30km", buffer="64MiB", priorities=2)
    options = ["--rate", "400Gbps", "--distance", "30km", "--buffer", "64MiB", "--priorities", "2"]
    assert answer.data == json.loads(command("size", *options, "--json")[1])
    assert answer.files["size.svg"].startswith("<svg")
    path = ROOT / "examples" / "victims.toml"
    assert xoff.Scenario.load(path).size().data == json.loads(command("size", "--scenario", path, "--json")[1])


def test_schemes_and_schema(command):
    assert xoff.schemes() == command("schemes")[1]
    assert xoff.schemes("pyrrha") == command("schemes", "pyrrha")[1]
    network = ["schemes", "portfc", "--topology", "ndc(4,1)", "--port", "H0:1"]
    assert xoff.schemes("portfc", topology="ndc(4,1)", port="H0:1") == command(*network)[1]
    assert xoff.schema() == json.loads(command("schema")[1])


def test_repro_reproduces_one_claim(tmp_path):
    answer = xoff.repro("pyrrha/fig13.pfc", experiments=ROOT / "experiments", out=tmp_path / "out", jobs=2)
    assert "fig13.pfc: reproduced" in str(answer)
    assert answer.data == json.loads((tmp_path / "out" / "results.json").read_text())


def test_warnings():
    warnings = xoff.example("victims").set("flow_control.scheme", "pyrrha").warnings
    assert any("flow_control.xoff" in warning for warning in warnings)
