"""Grids through engines: process pools, Dask, Parsl."""

import concurrent.futures
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import distributed
import kubernetes_validate
import parsl
import pytest
import yaml
from conftest import ROOT
from parsl.concurrent import ParslPoolExecutor
from test_cloud import free_port
from test_store import grid  # noqa: F401

import xoff


def pool():
    return concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def equals(store, own):
    """Compare the bytes of the numbers and the flows with those of a grid on one machine."""
    store.comparison()
    assert (Path(store.place) / "grid.parquet").read_bytes() == (own.path / "grid.parquet").read_bytes()


def test_a_process_pool_makes_a_grid(grid, tmp_path):  # noqa: F811
    told = []
    with pool() as executor:
        store = grid.run(executor=executor, store=tmp_path / "st", progress=lambda done, text: told.append(text))
        assert told[-1].startswith("20 of 20 runs")
        again = grid.run(executor=executor, store=tmp_path / "st")
        assert again.place == store.place
    equals(store, grid.run(jobs=2))


def test_a_store_without_an_engine_is_made_here(grid, tmp_path):  # noqa: F811
    store = grid.run(store=tmp_path / "st", jobs=2)
    assert store.status().data["runs_done"] == 20
    equals(store, grid.run(jobs=2))
    assert "srcdoc" in store._repr_html_()


def test_a_rule_through_an_engine(grid, tmp_path):  # noqa: F811
    many = xoff.Grid(grid.scenario, vary={"traffic.0.load": [0.3, 0.5]}, seeds=range(1, 41))
    rule = "ci95(slowdown.mean) < 8%"
    here = xoff.Store.plan(many, tmp_path / "here", chunk=5)
    here.work(until=rule)
    with pool() as executor:
        there = xoff.Store.plan(many, tmp_path / "there", chunk=5).run(executor, until=rule, window=4)
    state = there.status().data
    assert state["runs_done"] == here.status().data["runs_done"] < 80
    assert state["until"]["narrow"] == 2
    assert there.comparison() == here.comparison()


def test_parsl_makes_a_grid(grid, tmp_path, monkeypatch):  # noqa: F811
    # Parsl starts its programs by name, and the environment of the tests need not be active.
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"])
    engine = parsl.HighThroughputExecutor(
        label="xoff", max_workers_per_node=2, encrypted=False, address="127.0.0.1"
    )
    config = parsl.Config(executors=[engine], run_dir=str(tmp_path / "parsl"), usage_tracking=0)
    with ParslPoolExecutor(config) as executor:
        store = grid.run(executor=executor, store=tmp_path / "st")
    equals(store, grid.run(jobs=2))


class Cluster:
    """A real scheduler and two workers, each a process."""

    def __init__(self, log):
        self.log, self.port = log.open("a"), free_port()
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker(), self.start_worker()]

    def _start(self, *command):
        program = [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]]
        return subprocess.Popen(program, stdout=self.log, stderr=self.log)

    def start_scheduler(self):
        process = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")

        def there():
            with socket.socket() as wanted:
                return wanted.connect_ex(("127.0.0.1", self.port)) == 0

        wait("the scheduler", there)
        return process

    def start_worker(self):
        address = f"tcp://127.0.0.1:{self.port}"
        return self._start(
            "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"
        )

    def kill(self):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self.log.close()


def wait(what, there):
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end, f"{what} does not come"
        time.sleep(0.02)


def test_a_dask_cluster_loses_workers_and_its_scheduler(grid, tmp_path):  # noqa: F811
    number = int(os.environ.get("XOFF_DASK_SEEDS", "60"))
    many = xoff.Grid(
        grid.scenario.set("run.duration", "200us"), vary={"traffic.0.load": [0.3, 0.5]}, seeds=range(number)
    )
    store = xoff.Store.plan(many, tmp_path / "st", chunk=4)
    chunks = store.status().data["chunks"]
    place = Path(store.place) / "done"

    def done():
        # A killed worker may leave a file that it has not finished; its name ends otherwise.
        return len(list(place.glob("*.json")))

    cluster = Cluster(tmp_path / "dask.log")
    trouble = []

    def make_trouble():
        """Kill a worker in the middle of a chunk three times, stop one past its lease, kill all."""
        try:
            for part in (1, 2, 3):
                wait("progress", lambda: done() > part * chunks // 10)  # noqa: B023
                cluster.workers[0].kill()
                cluster.workers[0].wait()
                cluster.workers[0] = cluster.start_worker()
            wait("progress", lambda: done() > 4 * chunks // 10)
            cluster.workers[1].send_signal(signal.SIGSTOP)
            time.sleep(2)
            cluster.workers[1].send_signal(signal.SIGCONT)
            wait("progress", lambda: done() > 5 * chunks // 10)
            cluster.scheduler.kill()
            # Workers would finish the chunks while the client waits for the scheduler.
            for worker in cluster.workers:
                worker.kill()
        except BaseException as error:  # noqa: BLE001
            trouble.append(error)

    try:
        # After so long without a scheduler the client gives up.
        client = distributed.Client(f"tcp://127.0.0.1:{cluster.port}", timeout=5)
        client.wait_for_workers(2, timeout=60)
        thread = threading.Thread(target=make_trouble)
        thread.start()
        with pytest.raises(xoff.ResultsError, match="the engine"):
            store.dask(client, lease="1s")
        thread.join()
        assert not trouble, trouble
        assert done() < chunks
        client.close(timeout=2)
        cluster.kill()
        # A new scheduler goes on.
        cluster = Cluster(tmp_path / "dask.log")
        with distributed.Client(f"tcp://127.0.0.1:{cluster.port}", timeout=60) as client:
            told = []
            again = many.dask(client, store=store.place, progress=lambda done, text: told.append((done, text)))
            assert told[-1][0] == 1.0
    finally:
        cluster.kill()
    state = again.status().data
    assert (state["chunks_done"], state["failed"], state["conflicts"]) == (chunks, [], [])
    equals(store, many.run(jobs=2))
    records = [json.loads(path.read_text()) for path in place.glob("*.json")]
    assert sum(record["runs"] for record in records) == 2 * number


def test_wrong_engines(grid, tmp_path):  # noqa: F811
    with pytest.raises(xoff.ScenarioError, match="executor needs store"):
        grid.run(executor=pool())
    with pytest.raises(xoff.ScenarioError, match="out and store are not possible together"):
        grid.run(store=tmp_path / "st", out=tmp_path / "out")
    store = xoff.Store.plan(grid, tmp_path / "st")
    with pytest.raises(xoff.ScenarioError, match="executor = 3 is not possible"):
        store.run(3)
    with pytest.raises(xoff.ScenarioError, match="client = 'tcp"):
        store.dask("tcp://127.0.0.1:1")
    with pytest.raises(xoff.ScenarioError, match="is no rule"):
        store.work(until="p99 < 5%")
    executor = pool()
    executor.shutdown()
    with pytest.raises(xoff.ResultsError, match="the engine takes no more work") as raised:
        store.run(executor)
    assert "what is done stays done" in raised.value.remedy


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_pool_that_breaks_is_one_error(grid, tmp_path, monkeypatch):  # noqa: F811
    from xoff import _engine

    store = xoff.Store.plan(grid, tmp_path / "st")
    monkeypatch.setattr(_engine, "xoff_chunk", die)
    with pool() as executor, pytest.raises(xoff.ResultsError, match="the engine"):
        store.run(executor)
    monkeypatch.undo()
    assert grid.run(store=store.place).status().data["runs_done"] == 20


def test_the_job_of_kubernetes_is_valid(command, tmp_path):
    """It has the schema of Kubernetes, and its command is one of xoff."""
    job = yaml.safe_load((ROOT / "examples" / "kubernetes.yaml").read_text())
    kubernetes_validate.validate(job, "1.31", strict=True)
    program, *arguments = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert program == "xoff"
    there = [str(tmp_path) if argument.startswith("s3://") else argument for argument in arguments]
    status, _, errors = command(*there)
    assert status == 1
    assert "is no store" in errors
