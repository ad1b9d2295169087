"""A grid on a real Slurm of one node: `xoff grid slurm --submit`, and every run of the store is there afterwards.

Usage: slurm.py XOFF DIRECTORY. The test starts munged, slurmctld and slurmd with files in DIRECTORY, and stops them.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

CONF = """\
ClusterName=xoff
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

SCENARIO = """\
[topology]
kind = "line"
switches = 1
hosts_per_switch = 5
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"

[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.5

[run]
duration = "300us"
drain = "1ms"
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait(what, there, log, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            text = log.read_text()[-2000:] if log.exists() else ""
            sys.exit(f"tests/slurm.py: {what} does not come\n{text}")
        time.sleep(0.2)


def main(program, base):
    shutil.rmtree(base, ignore_errors=True)
    for name in ("state", "spool"):
        (base / name).mkdir(parents=True)
    # munged wants to be sure that nobody else can write there.
    base.chmod(0o700)
    host = socket.gethostname().split(".")[0]
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    ports = [free_port(), free_port()]
    conf = base / "slurm.conf"
    conf.write_text(CONF.format(host=host, ports=ports, user=user, base=base, cores=os.cpu_count()))
    environment = {**os.environ, "SLURM_CONF": str(conf), "PATH": f"{program.parent}:/usr/sbin:{os.environ['PATH']}"}
    (base / "key").write_bytes(os.urandom(128))
    (base / "key").chmod(0o600)

    daemons = []

    def start(*command):
        out = (base / f"{Path(command[0]).name}.out").open("w")
        daemons.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))

    def run(*command, status=0):
        done = subprocess.run(command, cwd=base, env=environment, capture_output=True, text=True)
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    try:
        files = [f"--{name}-file={base}/munge.{name}" for name in ("pid", "log", "seed")]
        start(
            "munged", "--foreground", "--force", f"--key-file={base}/key", f"--socket={base}/munge.socket",
            *files,
        )
        wait("munged", (base / "munge.socket").exists, base / "munged.out")
        start("slurmctld", "-D", "-i")
        start("slurmd", "-D", "-N", host)
        idle = lambda: "idle" in subprocess.run(["sinfo", "-h"], env=environment, capture_output=True, text=True).stdout
        wait("an idle node", idle, base / "slurmctld.log")

        (base / "small.toml").write_text(SCENARIO)
        xoff = str(program)
        grid = ["small.toml", "--vary", "traffic.0.load=0.3,0.6", "--seeds", "1..20"]
        run(xoff, "grid", "plan", *grid, "--chunk", "2", "--store", "study")
        script = run(xoff, "grid", "slurm", "study", "--workers", "3", "--", "--time=5")
        assert "#SBATCH --array=1-3\n" in script and "#SBATCH --time=5\n" in script, script
        run("sbatch", "--test-only", str(written(base / "job.sh", script)))
        said = run(xoff, "grid", "slurm", "study", "--workers", "3", "--submit", "--", "--time=5")
        assert said.startswith("job "), said
        state = lambda: json.loads(run(xoff, "grid", "status", "study", "--json"))
        wait("the end of the grid", lambda: state()["runs_done"] == 40, base / "slurmd.log")
        assert state()["failed"] == [] and state()["lost_leases"] == 0, state()
        run(xoff, "grid", "table", "study")
        run(xoff, "run", *grid, "--quiet", "--out", "own")
        assert (base / "study/grid.parquet").read_bytes() == (base / "own/grid.parquet").read_bytes()
        workers = {json.loads(path.read_text())["worker"] for path in (base / "study/done").iterdir()}
        print(f"tests/slurm.py: Slurm made 40 runs by {len(workers)} workers, with the bytes of xoff run")
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(timeout=30)


def written(path, text):
    path.write_text(text)
    return path


main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
