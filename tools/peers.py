#!/usr/bin/env python3
"""Measures xoff beside csg-htsim and the official UET htsim, on one machine in one run.

All simulate a permutation of 2 MB flows in fat-trees of 128 and 1,024 hosts. The checkouts of
the other simulators are the user's: this script builds them with their own build files, and
writes its files into a temporary directory. `--cases` compares results instead of speeds: the runs that UET htsim
records, in a checkout and in xoff.
"""

import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOSTS = {128: 8, 1024: 16}  # hosts, and the ports k of a switch
FLOW_BYTES = 2_000_000
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# Payload, header and ACK of csg-htsim: its header and its ACK have 64 B. UET htsim has the
# same, but counts the header in its -mtu. The thresholds are the default of csg-htsim. Neither
# records what each flow waited for, so xoff does not, either.
SCENARIO = """\
[topology]
kind = "fat-tree"
k = {k}
link = {{ rate = "100Gbps", delay = "1us" }}

[flow_control]
scheme = "pfc"
xoff = "60kB"
xon = "48kB"

[transport]
mtu = "4000B"
header = "64B"
ack = "64B"

[measure]
explain = false

[[traffic]]
kind = "flows"
file = "{hosts}.csv"
"""

# A process of its own, because Linux counts in the peak memory of a program also the memory of
# the process that started it. This one has 5 MB, less than any simulator.
RUNNER = """
import os, sys, time
begin = time.perf_counter()
pid = os.fork()
if pid == 0:
    try:
        for name, descriptor in [("output.txt", 1), ("errors.txt", 2)]:
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.execv(sys.argv[1], sys.argv[1:])
    finally:
        os._exit(127)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


# The runs that UET htsim records (validate_uec_sender.txt, validate_uec_rcv.txt) and that xoff's experiment on NSCC
# repeats: name of the run there, connection matrix, and other arguments.
CASES = {
    "one": ("one.cm", "-sender_cc_only -end 1000"),
    "two-ways": ("bidir.cm", "-sender_cc_only -end 1000"),
    "incast-15": ("incast.cm", "-sender_cc_only -end 3000"),
    "incast-127": ("incast_128.cm", "-sender_cc_only -end 30000"),
    "incast-1023": ("incast_1024_100K.cm", "-sender_cc_only -end 15000 -cwnd 50"),
    "overlapped": ("incast_3-1_overlapped.tm", "-sender_cc_only -end 1000 -cwnd 50"),
    "outcast": ("outcast_incast.cm", "-sender_cc_only -end 3000"),
    "permutation-16": ("perm_16n_16c_2MB.cm", "-sender_cc_only -end 1000 -paths 128"),
    "permutation-1024": ("perm_1024n_1024c_0u_2000000b.cm", "-sender_cc_only -end 400 -paths 128"),
    "four-to-one": ("perm_1024n_1024c_0u_2000000b.cm",
                    "-end 2000 -paths 128 -sender_cc_only -topo topologies/leaf_spine_1024_oversub.topo"),
    "eight-to-one": ("perm_1024n_1024c_0u_2000000b.cm",
                     "-end 2000 -sender_cc_only -paths 128 -topo topologies/leaf_spine_1024_oversub_8-1.topo"),
    "credits-one": ("one.cm", "-receiver_cc_only -end 1000"),
    "credits-15": ("incast.cm", "-receiver_cc_only -end 3000"),
    "credits-127": ("incast_128.cm", "-receiver_cc_only -end 30000"),
}
# What the experiment measures of a run, in us.
OF_ENDS = {
    "first": lambda ends: min(ends.values()),
    "first-end": lambda ends: min(ends.values()),
    "last": lambda ends: max(ends.values()),
    "flow-1-0": lambda ends: ends["Uec_1_0"],
}


class Failure(Exception):
    """What the user can correct, in one sentence or two."""


class Peer:
    """Another simulator: `build` has commands and the directories in which they run."""

    def __init__(self, option, name, url, tools, source, build, program, arguments):
        self.option, self.name, self.url, self.tools = option, name, url, tools
        self.source, self.build, self.program, self.arguments = source, build, program, arguments


# -q 1000: csg-htsim prints a line for each packet beyond this limit, but keeps the packet.
# -paths 1: the hash gives each flow one path.
PEERS = [
    Peer(
        option="--csg",
        name="csg-htsim",
        url="https://github.com/Broadcom/csg-htsim",
        tools=["make", "g++"],
        source="sim/datacenter/main_roce.cpp",
        build=[("sim", ["make", f"-j{CORES}", "libhtsim.a"]),
               ("sim/datacenter", ["make", f"-j{CORES}", "htsim_roce"])],
        program="sim/datacenter/htsim_roce",
        arguments="-nodes {hosts} -mtu 4000 -strat ecmp_host -paths 1 -queue_type lossless_input "
                  "-q 1000 -pfc_thresholds 12 15 -end 1000000 -tm {hosts}.cm",
    ),
    Peer(
        option="--uet",
        name="UET htsim",
        url="https://github.com/ultraethernet/uet-htsim",
        tools=["cmake", "c++"],
        source="htsim/sim/datacenter/main_uec.cpp",
        build=[("htsim/sim", ["cmake", "-S", ".", "-B", "build"]),
               ("htsim/sim", ["cmake", "--build", "build", "--parallel", str(CORES), "--target", "htsim_uec"])],
        program="htsim/sim/datacenter/htsim_uec",
        arguments="-nodes {hosts} -mtu 4064 -sender_cc_algo nscc -paths 1 -end 1000000 -tm {hosts}.cm",
    ),
]


def arguments():
    parser = argparse.ArgumentParser(
        description="Measure xoff beside csg-htsim (RoCE with PFC), the official UET htsim (NSCC), or both: "
        "a permutation of 2 MB flows in fat-trees of 128 and 1,024 hosts, with links of 100 Gbit/s and 1 us. "
        "The script builds the checkouts with their own build files. It prints the medians as a table.",
        epilog="Work of other programs on the machine changes the result. Wait until the machine is idle.",
    )
    for peer in PEERS:
        parser.add_argument(peer.option, metavar="DIR", type=Path, help=f"a checkout of {peer.url}")
    parser.add_argument("--cases", action="store_true",
                        help="compare the times of flows instead: the runs that UET htsim records, with --uet")
    parser.add_argument("--runs", metavar="N", type=int, default=5,
                        help="runs of each simulator for each number of hosts, in alternation (default: 5)")
    parser.add_argument("--xoff", metavar="PATH", type=Path, default=ROOT / "target/release/xoff",
                        help="the program xoff (default: target/release/xoff)")
    found = parser.parse_args()
    found.peers = [(peer, directory) for peer in PEERS if (directory := getattr(found, peer.option[2:]))]
    if not found.peers:
        parser.error("name at least one checkout: --csg DIR, --uet DIR or both")
    if found.cases and not found.uet:
        parser.error("--cases needs a checkout of UET htsim: --uet DIR")
    if found.runs < 1:
        parser.error(f"--runs {found.runs}: the minimum is 1")
    return found


def check(options):
    """Finds missing programs and wrong directories before the first build."""
    if not os.access(options.xoff, os.X_OK) or options.xoff.is_dir():
        raise Failure(f"no program at {options.xoff}. Build it with `cargo build --release --locked --bin xoff`, "
                      "or name another one with --xoff PATH")
    for peer, directory in options.peers:
        if not (directory / peer.source).is_file():
            raise Failure(f"{peer.option} {directory}: this directory is no checkout of {peer.name}, because it has "
                          f"no {peer.source}. Run `git clone {peer.url}`, and name its directory")
        for tool in peer.tools:
            if not shutil.which(tool):
                raise Failure(f"{peer.name} needs {tool} for its build, but no directory of PATH has it. "
                              f"Install {tool}")


def build(peer, directory, log):
    print(f"building {peer.name} in {directory}", file=sys.stderr)
    with open(log, "wb") as output:
        for folder, command in peer.build:
            if subprocess.run(command, cwd=directory / folder, stdout=output, stderr=output).returncode != 0:
                raise Failure(f"{peer.name}: `{' '.join(command)}` failed in {directory / folder}. "
                              f"Its output is in {log}")
    program = (directory / peer.program).resolve()
    if not os.access(program, os.X_OK):
        raise Failure(f"{peer.name}: the build made no program {program}. Its output is in {log}")
    return program


def write_inputs(work):
    """Writes the same flows in the formats of all simulators: one cycle through all hosts in random order."""
    for hosts, k in HOSTS.items():
        order = list(range(hosts))
        random.Random(1).shuffle(order)
        flows = list(zip(order, order[1:] + order[:1]))
        matrix = [f"Nodes {hosts}", f"Connections {hosts}"]
        matrix += [f"{src}->{dst} id {number} start 0 size {FLOW_BYTES}" for number, (src, dst) in enumerate(flows, 1)]
        (work / f"{hosts}.cm").write_text("\n".join(matrix) + "\n")
        table = ["src,dst,bytes,start"] + [f"{src},{dst},{FLOW_BYTES},0us" for src, dst in flows]
        (work / f"{hosts}.csv").write_text("\n".join(table) + "\n")
        (work / f"{hosts}.toml").write_text(SCENARIO.format(hosts=hosts, k=k))


def measure(command, work):
    """Runs a program, and returns its output, wall seconds, CPU seconds and peak memory in bytes."""
    runner = [sys.executable, "-I", "-S", "-c", RUNNER, *command]
    found = subprocess.run(runner, cwd=work, stdout=subprocess.PIPE, text=True)
    status, wall, cpu, memory = map(float, found.stdout.split())
    if status != 0:
        raise Failure(f"`{' '.join(command)}` failed with exit status {status:.0f}. "
                      f"Its output is in {work}/output.txt and {work}/errors.txt")
    return (work / "output.txt").read_text(), wall, cpu, memory * (1 if sys.platform == "darwin" else 1024)


def peer_ends(output):
    """The time in us at which each completed flow ended, by its name."""
    return {name: float(end) for name, end in re.findall(r"Flow (\S+) .*?finished at (\S+)", output)}


def peer_completed(output):
    """The completed flows and the last FCT in us. All flows start at 0."""
    ends = peer_ends(output)
    return len(ends), max(ends.values(), default=0.0)


def xoff_completed(output):
    """The same. Without `run.duration` a run of xoff ends when the last flow has completed."""
    summary = json.loads(output)
    return next(row["finished"] for row in summary["sizes"] if row["name"] == "all"), summary["simulated_ps"] / 1e6


def commit(directory):
    if not shutil.which("git"):
        return "unknown commit"
    found = subprocess.run(["git", "-C", directory, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown commit"


def machine():
    try:
        names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{names[0] if names else platform.machine()}, {CORES} cores"


def print_table(rows):
    """Prints Markdown: the first row is the heading, and numbers are on the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width if column == 1 else "-" * (width - 1) + ":" for column, width in enumerate(widths)])
    for row in rows:
        cells = [cell.ljust(width) if column == 1 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print(f"| {' | '.join(cells)} |")


def compare(options, work):
    xoff = [str(options.xoff.resolve()), "run", "{hosts}.toml", "--no-out", "--quiet", "--json"]
    one_thread = "xoff, 1 thread"
    ours = [(one_thread, xoff + ["--threads", "1"], xoff_completed), ("xoff, default threads", xoff, xoff_completed)]
    theirs = []
    for peer, directory in options.peers:
        program = build(peer, directory, work / f"build{peer.option}.log")
        theirs.append((peer.name, [str(program), *peer.arguments.split()], peer_completed))
    # In alternation: csg-htsim, xoff, UET htsim, xoff.
    simulators = [row for pair in zip(theirs, ours) for row in pair] + ours[len(theirs):]
    write_inputs(work)

    results = {}
    for number in range(1, options.runs + 1):
        for hosts in HOSTS:
            for name, command, completed in simulators:
                output, *costs = measure([command[0], *(part.format(hosts=hosts) for part in command[1:])], work)
                flows, last = completed(output)
                if flows != hosts:
                    raise Failure(f"{name} completed {flows} of {hosts} flows, so its times are no result. "
                                  f"Its output is in {work}/output.txt")
                print(f"run {number} of {options.runs}, {hosts} hosts, {name}: {costs[0]:.2f} s", file=sys.stderr)
                results.setdefault((hosts, name), []).append([*costs, last])

    plural = "s" if options.runs > 1 else ""
    print(f"{datetime.date.today()}, {machine()}; median of {options.runs} run{plural}; all flows completed")
    for peer, directory in options.peers:
        print(f"{peer.name} {commit(directory)}: {Path(peer.program).name} {peer.arguments.format(hosts='N')}")
    version = subprocess.run([xoff[0], "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{version}, this checkout {commit(ROOT)}\n")
    rows = [["hosts", "simulator", "wall (s)", "CPU (s)", "memory (MB)", "wall / xoff", "CPU / xoff", "last FCT (us)"]]
    for hosts in HOSTS:
        medians = {name: [statistics.median(column) for column in zip(*results[hosts, name])]
                   for name, _, _ in theirs + ours}
        base_wall, base_cpu = medians[one_thread][:2]
        for name, (wall, cpu, memory, last) in medians.items():
            rows.append([f"{hosts:,}", name, f"{wall:.3f}", f"{cpu:.3f}", f"{memory / 1e6:.0f}",
                         f"{wall / base_wall:.2f}", f"{cpu / base_cpu:.2f}", f"{last:.0f}"])
    print_table(rows)
    print("\nx / xoff: times as long as xoff with one thread. last FCT: completion of the last flow.")


def compare_cases(options, work):
    """Runs each case in the checkout and in xoff; whether all times agree within the experiment's tolerances."""
    peer, directory = next(row for row in options.peers if row[0].option == "--uet")
    program = build(peer, directory, work / f"build{peer.option}.log")
    folder = (directory / peer.program).parent.resolve()
    ends = {}
    for name, (matrix, more) in CASES.items():
        print(f"{peer.name}: {name}", file=sys.stderr)
        more = more.replace("topologies/", f"{folder}/topologies/")
        command = [str(program), "-tm", str(folder / "connection_matrices" / matrix), *more.split()]
        ends[name] = peer_ends(measure(command, work)[0])
    print("xoff: xoff repro ultra-ethernet/nscc --quick", file=sys.stderr)
    ours = [str(options.xoff.resolve()), "repro", "ultra-ethernet/nscc", "--quick", "--out", "repro", "--json"]
    found = json.loads(measure(ours, work)[0])
    measures = [m for e in found["experiments"] for c in e["claims"] for m in c["measures"]]

    rows = [["difference", "run", "time of", "recorded (us)", "UET htsim (us)", "xoff (us)", "tolerance", "agrees"]]
    for m in measures:
        said = re.fullmatch(r"within (\d+)% of ([\d.]+) us", m["says"] or "")
        if m["run"] in ends and m["metric"] in OF_ENDS and said:
            theirs, tolerance = OF_ENDS[m["metric"]](ends[m["run"]]), float(said[1]) / 100
            difference = m["mean"] / theirs - 1
            agrees = abs(difference) <= tolerance
            rows.append([f"{difference:+.1%}", m["run"], m["metric"], said[2], f"{theirs:g}", f"{m['mean']:.1f}",
                         f"{tolerance:.0%}", "yes" if agrees else "no"])
    cases, agreed = len(rows) - 1, sum(row[-1] == "yes" for row in rows[1:])
    print(f"{agreed} of {cases} times agree; {peer.name} {commit(directory)}, xoff {commit(ROOT)}, one seed\n")
    print_table(rows)
    return agreed == cases


def main():
    options = arguments()
    work = None
    try:
        check(options)
        work = Path(tempfile.mkdtemp(prefix="xoff-peers-"))
        agree = compare_cases(options, work) if options.cases else compare(options, work) or True
        shutil.rmtree(work)
    except Failure as failure:
        # The temporary directory stays: the message names a file in it.
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        shutil.rmtree(work or "", ignore_errors=True)
        return 130
    return 0 if agree else 3


if __name__ == "__main__":
    sys.exit(main())
