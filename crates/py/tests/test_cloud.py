"""Stores of S3: a real server on this machine, which moto pretends."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time

import boto3
import botocore.exceptions
import pytest
from test_store import grid  # noqa: F401

import xoff

BUCKET = "grids"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Start a server with a bucket; the process's environment leads to it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    access = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    for name, value in {**access, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    with (tmp_path / "moto.log").open("w") as log:
        program = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(program, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
                break
            except botocore.exceptions.EndpointConnectionError:
                assert time.monotonic() < end, (tmp_path / "moto.log").read_text()
                time.sleep(0.1)
        yield process, Client(url)
    finally:
        process.kill()
        process.wait()


class Client:
    """The objects of the bucket, past xoff."""

    def __init__(self, url):
        self.s3 = boto3.client("s3", endpoint_url=url)

    def names(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def get(self, name):
        return self.s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    def put(self, name, content):
        self.s3.put_object(Bucket=BUCKET, Key=name, Body=content)


def work(place):
    return xoff.Store(place).work(jobs=1, lease="10s")


def test_a_grid_in_a_bucket_is_that_of_one_machine(grid, server, command, tmp_path):  # noqa: F811
    _, bucket = server
    place = f"s3://{BUCKET}/study/one"
    store = xoff.Store.plan(grid, place, chunk=2, keep=True)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = pool.map(work, [place] * 2)
    assert (sum(runs for runs, _ in made), [failed for _, failed in made]) == (20, [0, 0])
    assert "complete" in str(store.status())
    own = grid.run(jobs=2)
    assert store.comparison() == {**own.comparison()}
    assert bucket.get("study/one/grid.parquet") == (own.path / "grid.parquet").read_bytes()
    assert len(store.table) == 20
    assert store.report() == f"{place}/report.html"
    kept = [name for name in bucket.names() if name.endswith("/manifest.json")]
    assert len(kept) == 20
    run = own.runs()[0].path.name
    flows = bucket.get(f"study/one/kept/{run}/flows.parquet")
    assert flows == (own.path / "runs" / run / "flows.parquet").read_bytes()
    # The command line reaches the same store.
    status, said, _ = command("grid", "status", place)
    assert status == 0
    assert "done         20 of 20 runs (100.0%)" in said
    status, said, errors = command("work", place)
    assert (status, errors.strip()) == (0, "every chunk is done")


def race(place, barrier, chunks):
    """Try to make each chunk at the same moment as another process; return the chunks that were made here."""
    made = []
    for chunk in range(chunks):
        barrier.wait()
        runs, _, _ = xoff._xoff.work(place, 1, "60s", None, [chunk], None)
        made += [chunk] * runs
    return made


def test_workers_that_race_for_chunks_lose_and_double_nothing(server):
    _, bucket = server
    place, chunks = f"s3://{BUCKET}/race", int(os.environ.get("XOFF_RACES", "40"))
    tiny = xoff.example("leaf-spine").set({"run.duration": "1us", "run.drain": "1us"})
    store = xoff.Store.plan(xoff.Grid(tiny, seeds=range(1, chunks + 1)), place, chunk=1)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(2) as pool:
        barrier = manager.Barrier(2)
        a, b = pool.starmap(race, [(place, barrier, chunks)] * 2)
    assert sorted(a + b) == list(range(chunks)), "each chunk was made once"
    state = store.status().data
    assert (state["runs_done"], state["lost_leases"], state["conflicts"]) == (chunks, 0, [])
    assert sorted(store.table["seed"]) == list(range(1, chunks + 1))
    done = [name for name in bucket.names() if "/done/" in name]
    assert len(done) == chunks


def test_errors_of_a_bucket(grid, server):  # noqa: F811
    process, bucket = server
    with pytest.raises(xoff.ScenarioError, match="NoSuchBucket: The specified bucket does not exist"):
        xoff.Store.plan(grid, "s3://nothing/x")
    with pytest.raises(xoff.ScenarioError, match=r"s3://grids/x.* is no store: it has no plan.json"):
        xoff.Store(f"s3://{BUCKET}/x").work()
    place = f"s3://{BUCKET}/damaged"
    store = xoff.Store.plan(grid, place)
    store.work()
    part = next(name for name in bucket.names() if name.startswith("damaged/runs/"))
    bucket.put(part, bucket.get(part)[:100])
    with pytest.raises(xoff.ScenarioError, match="is damaged: it has 100 of"):
        store.comparison()
    # The server vanishes in the middle of the work.
    long = xoff.Store.plan(
        xoff.Grid(grid.scenario.set("run.duration", "20ms"), seeds=range(1, 9)), f"s3://{BUCKET}/y"
    )

    def watch(done, _):
        process.kill()

    with pytest.raises(xoff.ScenarioError, match=r"s3://grids/y/.* cannot be (written|read)"):
        long.work(jobs=1, progress=watch)


def test_a_result_that_differs_is_an_error(grid, server):  # noqa: F811
    _, bucket = server
    place = f"s3://{BUCKET}/differs"
    store = xoff.Store.plan(grid, place, chunk=20)
    lease = json.dumps({"worker": "far:7:1", "until_ms": 5}).encode()
    for name, content in {"leases/0000000/000001.json": lease, "runs/part-0000000.parquet": b"other"}.items():
        bucket.put(f"differs/{name}", content)
    with pytest.raises(
        xoff.ScenarioError, match="and far:7:1 made the chunk 0000000 of one plan, and got other bytes"
    ):
        store.work()
    assert "CONFLICT" in str(store.status())
    assert not [name for name in bucket.names() if "/done/" in name], "nothing looks complete"
