"""Ctrl-C, threads of Python, and the command line as the package brings it."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import jupyter_client
import pytest

import xoff


def test_ctrl_c_gives_a_partial_run(long):
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    run = long.run(threads=1)
    assert not run.complete
    assert run.stop == "interrupted"
    assert 0 < run.summary["simulated_ps"] < 10**11
    assert len(run.flows) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_gives_a_partial_grid(long):
    grid = xoff.Grid(long.set("run.duration", "20ms"), seeds=range(1, 10))
    press = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))

    def progress(done, text):
        # All runs are planned before the first one is made.
        if text.startswith("0 of 9") and press.ident is None:
            press.start()

    made = grid.run(jobs=1, progress=progress)
    assert not made.complete
    assert len(made.table) < 9


def test_ctrl_c_ends_planning():
    # 2 million flows take seconds to plan.
    scenario = xoff.example("leaf-spine").set({"run.duration": "8s", "traffic.0.load": 0.1})
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for verb in (scenario.topo, scenario.run):
        threading.Timer(0.5, press).start()
        with pytest.raises(KeyboardInterrupt):
            verb()
        assert len(pressed) == 1, "planning took no time"
        pressed.clear()


def test_a_plan_beyond_the_memory_is_an_error():
    scenario = xoff.example("leaf-spine").set({"run.duration": "20s"})
    try:
        xoff.limit_memory("300MB")
        for verb in (scenario.topo, scenario.check, scenario.run):
            with pytest.raises(xoff.ScenarioError, match="out of memory: planning the scenario"):
                verb()
        assert xoff.example("hello").run().complete
    finally:
        xoff.limit_memory()


#: A script for a separate process, because a process can set the directory for spilled tables only once.
LIMITED = """
import sys, xoff
xoff.limit_memory("40MB")
run = xoff.example("leaf-spine").set({"run.duration": "20ms", "measure.interval": "100ns"}).run(threads=1)
print(run.complete, run.stop)
xoff.limit_memory("8GB", spill=sys.argv[1])
print(xoff.example("hello").run().complete)
for limit in ({"memory": "much"}, {"spill": sys.argv[1]}, {"spill": "/nowhere/at/all"}, {"memory": 8}):
    try:
        xoff.limit_memory(**limit)
    except xoff.ScenarioError as error:
        print(error.message)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spills")
def test_a_run_beyond_the_memory_ends(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path], capture_output=True, text=True, check=True)
    first, second, *rest = done.stdout.splitlines()
    assert (first, second) == ("False memory", "True")
    assert len(rest) == 4
    assert "memory = `much`" in rest[0]
    assert "are kept in a directory already" in rest[1]
    assert "/nowhere/at/all" in rest[2]
    assert "memory = 8 is not possible" in rest[3]


CELL = """
import signal, time, xoff
scenario = xoff.example("leaf-spine").set({"run.duration": "100ms", "measure.interval": "1ms"})
print("begins", flush=True)
run = scenario.run(threads=1)
print("ended", run.complete, run.stop, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_an_interrupted_cell_of_a_notebook_has_a_partial_run(record_property):
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3")
    try:
        printed = []
        client.execute(CELL)
        stopped = None
        while True:
            message = client.get_iopub_msg(timeout=120)
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed.append(content["text"])
                if "begins" in content["text"]:
                    time.sleep(1.5)
                    manager.interrupt_kernel()
                    stopped = time.monotonic()
            assert message["msg_type"] != "error", content
            if message["msg_type"] == "status" and content["execution_state"] == "idle" and stopped:
                break
        seconds = time.monotonic() - stopped
        record_property("seconds_until_the_partial_run", seconds)
        print(f"a partial run {seconds:.2f} s after Ctrl-C")
        assert "".join(printed).splitlines()[-1] == "ended False interrupted True"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_runs_in_threads_of_python_run_at_once():
    """Each run waits, in its progress, for the other one: alone it would never go on."""
    both = threading.Barrier(2, timeout=60)
    met = []

    def make(seed):
        waited = False

        def progress(done, text):
            nonlocal waited
            if not waited:
                waited = True
                met.append(both.wait())

        scenario = xoff.example("leaf-spine").set("run.duration", "3ms")
        results[seed] = scenario.run(seed=seed, threads=1, progress=progress)

    results = {}
    threads = [threading.Thread(target=make, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(met) == [0, 1]
    alone = xoff.example("leaf-spine").set("run.duration", "3ms").run(seed=1)
    assert results[1].flows["fct_ps"] == alone.flows["fct_ps"]


def test_a_run_ends_when_its_progress_says_so(long):
    seen = []

    def progress(done, text):
        seen.append((done, text))
        return len(seen) < 5

    run = long.run(threads=1, progress=progress)
    assert (run.complete, run.stop, len(seen)) == (False, "interrupted", 5)
    assert all(0 <= done <= 1 and text for done, text in seen)


def test_ctrl_c_in_a_progress_is_ctrl_c(long):
    def progress(done, text):
        # While the run is planned there is no part of it.
        if done > 0:
            raise KeyboardInterrupt

    try:
        assert not long.run(threads=1, progress=progress).complete
    except KeyboardInterrupt:
        pytest.fail("the partial run is lost")


def in_process(seed, out):
    return xoff.example("hello").run(seed=seed, out=out)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_scenarios_and_saved_runs_cross_processes(tmp_path, method):
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        scenario = xoff.example("hello").set("traffic.0.size", "2MB")
        assert pool.submit(xoff.Scenario.to_dict, scenario).result() == scenario.to_dict()
        runs = list(pool.map(in_process, range(4), [tmp_path / str(i) for i in range(4)]))
    assert [run.seed for run in runs] == [0, 1, 2, 3]
    assert all(len(run.flows) == 1 for run in runs)
    temporary = xoff.example("hello").run()
    with pytest.raises(xoff.ResultsError, match="cannot be sent"):
        pickle.dumps(temporary)
    assert copy.deepcopy(temporary) is temporary


def test_a_forked_process_removes_nothing():
    run = xoff.example("hello").run()
    child = multiprocessing.get_context("fork").Process(target=lambda: None)
    child.start()
    child.join()
    assert len(run.ports) > 0


def test_python_goes_on_during_a_run():
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counted
    xoff.example("leaf-spine").set("run.duration", "2ms").run(threads=1)
    after = counted
    done.set()
    counter.join()
    assert after > before + 1000


def xoff_command(*arguments, **options):
    code = "import xoff; xoff._main()"
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, **options
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("schemes",),
        ("run", "nope.toml"),
        ("nonsense",),
        ("size", "--rate", "1Gbps", "--distance", "1km"),
    ],
)
def test_the_package_brings_the_command(arguments, command):
    done = xoff_command(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == command(*arguments)


def test_ctrl_c_of_the_command_is_that_of_the_program(tmp_path):
    (tmp_path / "net.toml").write_text(dict(xoff._xoff.examples())["leaf-spine"])
    code = "import xoff; xoff._main()"
    arguments = ["run", "net.toml", "--set", "run.duration=100ms", "--threads", "1", "--json"]
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 130, errors
    assert b'"stop": "interrupted"' in out
    assert b"KeyboardInterrupt" not in errors
    assert not xoff.Run.open(tmp_path / "xoff-runs" / "net").complete
