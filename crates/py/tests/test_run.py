"""Runs: their directory, numbers, explanations and pages."""

import gc
import json

import pytest
from conftest import ROOT

import xoff

#: Of `manifest.json`, what differs between two runs of the same scenario.
WALL = ("wall_seconds", "xxh128")


def contents(directory):
    """The bytes of each file, without the wall time of the manifest."""
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    manifest = json.loads(files.pop("manifest.json"))
    assert all(manifest.pop(key) is not None for key in WALL)
    return files, manifest


def test_saved_runs_have_the_bytes_of_the_command_line(command, tmp_path):
    path = ROOT / "examples" / "victims.toml"
    options = ["--set", "flow_control.scheme=bfc", "--set", "measure.explain=true", "--set", "traffic.0.load=0.05"]
    assert (
        command("run", path, "--quiet", "--threads", "1", "--pcap", "S0.0:3", "--out", tmp_path / "a", *options)[0]
        == 0
    )
    scenario = xoff.Scenario.load(path).set(
        {"flow_control.scheme": "bfc", "measure.explain": True, "traffic.0.load": 0.05}
    )
    saved = scenario.run(threads=2, capture="S0.0:3").save(tmp_path / "b")
    assert saved.path == tmp_path / "b"
    (a, manifest_a), (b, manifest_b) = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert sorted(a) == sorted(b)
    assert "capture.pcapng" in a
    for name in a:
        assert a[name] == b[name], name
    assert manifest_a == manifest_b
    # A run into a directory has them, too.
    scenario.run(capture=["S0.0:3"], out=tmp_path / "c")
    assert contents(tmp_path / "c") == (a, manifest_a)


def test_what_a_run_knows(victims):
    assert (victims.name, victims.complete, victims.stop, victims.seed) == ("victims", True, "all-done", 1)
    assert victims.deadlock is None
    assert victims.summary == json.loads((victims.path / "summary.json").read_text())
    assert victims.scenario["flow_control"]["scheme"] == "pfc"
    assert repr(victims) == "<xoff.Run victims: complete, 961 of 961 flows finished>"
    assert len(victims.flows) == 961
    assert len(victims.pauses) == victims.summary["pauses"]["count"] == 287
    assert [len(t) > 0 for t in (victims.series, victims.blocking, victims.critical)] == [True] * 3
    assert len(victims.ports) == 48
    assert len(victims.nodes) == 22
    assert len(victims.accounts) > 0


def test_computations_of_a_job():
    table = {"forward": "100us", "parameters": 8000, "layers": 2, "hidden": 10, "sequence": 50, "micro_batches": 1}
    network = {"kind": "line", "switches": 1, "hosts_per_switch": 2, "link": {"rate": "100Gbps", "delay": "1us"}}
    job = xoff.Scenario.from_dict({"topology": network, "traffic": [{"kind": "training-step", **table}]}).run()
    computed = job.computations.to_polars()
    # A forward and a backward of two layers with two halves each, at both hosts.
    assert len(computed) == 2 * 8
    assert (computed["end_ps"] - computed["start_ps"]).sum() == 2 * 300_000_000
    assert set(computed["host"]) == {"H0", "H1"}


def test_a_deadlock():
    run = xoff.example("bcube-deadlock").run()
    assert run.deadlock["closed_ps"] == pytest.approx(2.151e9, rel=1e-3)
    assert len(run.deadlock["cycle"]) == 8
    assert repr(run).endswith("deadlock>")


def test_explanations(victims, command):
    assert victims.explain().text == command("explain", victims.path)[1]
    assert victims.explain(flow=31).text == command("explain", victims.path, "--flow", 31)[1]
    assert victims.explain(port="S0.3:3").text == command("explain", victims.path, "--port", "S0.3:3")[1]
    assert victims.explain(class_="mice").text == command("explain", victims.path, "--class", "mice")[1]
    assert victims.explain(flow=31).data == json.loads(command("explain", victims.path, "--flow", 31, "--json")[1])


def test_pages(victims, tmp_path, command):
    page = victims.report(tmp_path / "page.html")
    assert command("report", victims.path, "--out", tmp_path / "other.html")[0] == 0
    assert page.read_bytes() == (tmp_path / "other.html").read_bytes()
    shown = victims._repr_html_()
    assert shown.startswith("<iframe")
    # Names of a scenario cannot leave the frame.
    assert '"' not in shown.split('srcdoc="', 1)[1].split('" sandbox', 1)[0]


def test_two_runs_compared(victims):
    pyrrha = xoff.example("victims").set({"measure.explain": True, "flow_control.scheme": "pyrrha"}).run()
    comparison = xoff.Run.compare(victims, pyrrha)
    rows = {row["metric"]: row for row in comparison.rows}
    a, b = (run.summary["sizes"][-1]["slowdown"]["mean"] for run in (victims, pyrrha))
    assert (rows["slowdown_mean"]["a"], rows["slowdown_mean"]["b"]) == (a, b)
    assert rows["slowdown_mean"]["ratio"] == pytest.approx(b / a)
    assert rows["deadlock_ps"]["a"] is None
    assert comparison.names == ("pfc", "pyrrha")
    assert str(comparison).split()[:5] == ["metric", "pfc", "pyrrha", "b", "/"]
    assert "<table>" in comparison._repr_html_()


def test_temporary_results_go_with_their_run():
    run = xoff.example("hello").run()
    flows = run.flows
    place = run.path.parent
    assert place.is_dir()
    run.close()
    assert not place.exists()
    assert len(flows) == 1
    with pytest.raises(xoff.ResultsError, match="closed"):
        run.ports  # noqa: B018
    another = xoff.example("hello").run()
    place = another.path.parent
    del another
    gc.collect()
    assert not place.exists()


def test_opened_runs_stay(tmp_path):
    saved = xoff.example("hello").run().save(tmp_path / "run")
    saved.close()
    again = xoff.Run.open(tmp_path / "run")
    assert again.summary["sizes"][-1]["finished"] == 1
    # An older run is replaced, and nothing else.
    xoff.example("hello").run(seed=3).save(tmp_path / "run")
    assert xoff.Run.open(str(tmp_path / "run")).seed == 3
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(xoff.ResultsError, match=r"mine\.txt"):
        xoff.example("hello").run().save(tmp_path / "run")


def test_a_run_that_was_replaced_says_so(tmp_path):
    first = xoff.example("hello").run(out=tmp_path / "run")
    with pytest.raises(xoff.ResultsError, match="already contains a run"):
        xoff.example("hello").run(out=tmp_path / "run", seed=2)
    assert len(xoff.Run.open(first.path).flows) == 1
    assert xoff.example("hello").run(out=tmp_path / "run", seed=2, overwrite=True).seed == 2
    with pytest.raises(xoff.ResultsError, match="was replaced"):
        first.flows  # noqa: B018


def test_paths_stay_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = xoff.example("hello").run(out="run")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert len(run.flows) == 1
    with pytest.raises(xoff.ResultsError, match="is in the directory that is to be copied"):
        run.save(run.path / "inside")
    with xoff.Run.open("../run") as again:
        assert again.seed == run.seed


def test_seeds_and_threads_change_what_they_should():
    scenario = xoff.example("victims")
    one, two, other = scenario.run(threads=1), scenario.run(threads=2), scenario.run(seed=2)
    assert one.flows["fct_ps"] == two.flows["fct_ps"] != other.flows["fct_ps"]
