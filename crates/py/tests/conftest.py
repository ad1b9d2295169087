"""What the tests of the Python package share."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import xoff

# A shell that starts the tests in the background has Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def program():
    """The binary of the command line: XOFF, or that of `cargo build --release`."""
    path = Path(os.environ.get("XOFF", ROOT / "target" / "release" / "xoff"))
    assert path.is_file(), f"{path} is missing: set XOFF"
    return path


@pytest.fixture
def command(program, tmp_path):
    """Runs the command line in a new directory; returns status, output and errors."""

    def run(*arguments, directory=tmp_path):
        environment = {**os.environ, "NO_COLOR": "1"}
        done = subprocess.run(
            [program, *map(str, arguments)], cwd=directory, env=environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(scope="session")
def victims():
    """A run with everything measured: 961 flows, 287 pauses."""
    return xoff.example("victims").set({"measure.explain": True, "measure.interval": "20us"}).run()


@pytest.fixture
def long():
    """A scenario that would take a minute or more."""
    return xoff.example("leaf-spine").set({"run.duration": "100ms", "measure.interval": "1ms"})
