#!/usr/bin/env python3
"""Make docs/WHICH.md: which flow control for which fabric.

One grid of four fabrics, four patterns of traffic, eight schemes, with and without adaptive routing, under five
seeds. `python tools/which_flow_control.py` makes the runs and the page; `--out DIR` keeps the runs, and the
same command with the same DIR goes on after an interruption. `--stored` makes the page from the numbers of before.
"""

import argparse
import csv
import io
import statistics
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import xoff

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/WHICH.md"
DATA = ROOT / "docs/data/which.csv"
PICTURE = ROOT / "docs/which.svg"
SEEDS = range(1, 6)

LINK = {"rate": "100Gbps", "delay": "500ns"}

# About 64 hosts each, all links of 100 Gbit/s; the fabric of two tiers is oversubscribed 2:1.
FABRICS = {
    "leaf-spine": {
        "topology": {
            "kind": "leaf-spine",
            "leaves": 8,
            "spines": 4,
            "hosts_per_leaf": 8,
            "host_link": LINK,
            "fabric_link": LINK,
        },
    },
    "3-tier": {"topology": {"kind": "fat-tree", "k": 6, "link": LINK}},
    "rail-only": {
        "topology": {
            "kind": "rail-only",
            "n": 8,
            "domain_link": {"rate": "400Gbps", "delay": "500ns"},
            "rail_link": LINK,
        },
    },
    "dragonfly": {
        "topology": {
            "kind": "dragonfly",
            "switches_per_group": 4,
            "hosts_per_switch": 2,
            "global_links": 2,
            "link": LINK,
        },
    },
}

# Each pattern on all hosts. The flows beside the incast are those that should not suffer from it.
TRAFFICS = {
    "incast": [
        {"name": "incast", "kind": "incast", "fan_in": 32, "size": "128kB"},
        {"name": "others", "kind": "permutation", "size": "1MB"},
    ],
    "all-to-all": [{"kind": "all-to-all", "size": "32kB"}],
    "moe": [
        {
            "kind": "moe",
            "experts": 16,
            "experts_per_token": 2,
            "tokens": 64,
            "token_size": "8KiB",
            "rounds": 2,
            "compute": "20us",
        },
    ],
    "ring all-reduce": [{"kind": "ring-all-reduce", "size": "8MB"}],
}

# All without congestion control, so that the flow control alone decides.
SCHEMES = {
    "PFC": {"flow_control.scheme": "pfc"},
    "BFC": {"flow_control.scheme": "bfc"},
    "Pyrrha": {"flow_control.scheme": "pyrrha"},
    "PortFC": {"flow_control.scheme": "portfc"},
    # With InfiniBand's longest period of credits a link would be half used.
    "CBFC": {"flow_control.scheme": "cbfc", "flow_control.update": "2us"},
    "UEC CBFC": {"flow_control.scheme": "uec-cbfc"},
    "trimming": {
        "flow_control.scheme": "trimming",
        "transport.kind": "ndp",
        # Eight packets, as in NDP's paper.
        "priority": [{"id": 3, "egress_limit": "33264B"}],
    },
    "none": {"flow_control.scheme": "none", "transport.kind": "irn"},
}

# Adaptive routing: flowlets for transports that a reordered packet costs a retransmission, packets for NDP, and
# UGAL where paths differ in length.
ROUTINGS = ("fixed paths", "adaptive")

# Flow controls whose pauses can make a cycle of priorities, which virtual channels break.
WITH_CHANNELS = ("PFC", "CBFC", "UEC CBFC")

# What all runs have: 5 MB of buffer for each Tbit/s of a switch, as in switches of today.
BASE = {
    "topology": FABRICS["leaf-spine"]["topology"],
    "traffic": TRAFFICS["incast"],
    "switch": {"buffer": "6MB"},
    "transport": {"mtu": "4096B"},
    "measure": {"blocking": True, "explain": False},
}


def keys(fabric: str, traffic: str, scheme: str, routing: str) -> dict[str, object]:
    """Return everything that a run sets."""
    out: dict[str, object] = {**FABRICS[fabric], "traffic": TRAFFICS[traffic], **SCHEMES[scheme]}
    if fabric == "dragonfly" and scheme in WITH_CHANNELS:
        out["routing.virtual_channels"] = 3
    if routing == "adaptive":
        if fabric == "dragonfly":
            out["routing.load_balancing"] = "ugal"
            out.setdefault("transport.kind", "irn")
        elif scheme == "trimming":
            out["routing.load_balancing"] = "spray"
        else:
            out["routing.load_balancing"] = "adaptive"
        if fabric == "rail-only":
            out["routing.kind"] = "shortest-path"
    return out


def name(fabric: str, traffic: str, scheme: str, routing: str) -> str:
    """Name a case, which is a variant of the grid."""
    return "..".join((fabric, traffic, scheme, routing))


def cases(base: xoff.Scenario) -> tuple[dict[str, dict[str, object]], dict[str, str]]:
    """Return every case that xoff accepts, and for the others the reason."""
    good, refused = {}, {}
    for fabric in FABRICS:
        for traffic in TRAFFICS:
            for scheme in SCHEMES:
                for routing in ROUTINGS:
                    case = name(fabric, traffic, scheme, routing)
                    wanted = keys(fabric, traffic, scheme, routing)
                    try:
                        base.set(wanted).traffic()
                    except xoff.ScenarioError as error:
                        refused[case] = str(error).splitlines()[0]
                    else:
                        good[case] = wanted
    return good, refused


def measured(run: xoff.Run) -> dict[str, float | None]:
    """Return the numbers of a run that the page compares."""
    summary = run.summary
    everything = summary["sizes"][-1]
    finished = everything["finished"] == everything["flows"] and summary["stop"] == "all-done"
    others = next((c for c in summary["classes"] if c["name"] == "others"), everything)
    slowdown = others["slowdown"]
    return {
        # The time of the whole: from the start, at 0, to the last completion.
        "time_us": summary["simulated_ps"] / 1e6 if finished else None,
        "p99": slowdown["p99"] if slowdown and finished else None,
        # After a deadlock they wait until the run is ended.
        "victim_ms": summary["blocking"]["victim_ps"] / 1e9 if finished else None,
        "buffer_kb": (summary["peaks"]["buffer"] or {"bytes": 0})["bytes"] / 1e3,
        "deadlocks": float(summary["deadlock"] is not None),
        "lost": float(sum(summary["drops"][f"{kind}_packets"] for kind in ("lossless", "lossy", "scheme"))),
    }


def checked(scenario: xoff.Scenario) -> dict[str, float | None]:
    """Return what `xoff check` proves of a case under one seed."""
    free = scenario.check(progress=False).deadlock_free
    return {"proved": float(free is True), "refuted": float(free is False)}


Numbers = dict[str, tuple[float, float, float] | None]
Results = dict[str, Numbers]


def over_seeds(rows: list[dict[str, float | None]]) -> Numbers:
    """Return mean, least and greatest of each number over the seeds; None where a run has none."""
    out: Numbers = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        known = [value for value in values if value is not None]
        out[key] = (statistics.mean(known), min(known), max(known)) if len(known) == len(values) else None
    return out


def gather(base: xoff.Scenario, cases: dict[str, dict[str, object]], runs: xoff.GridRun) -> Results:
    """Return the numbers of each case: those of its runs, and the proofs."""
    out: Results = {}
    for case, wanted in cases.items():
        pairs = zip(SEEDS, runs.runs({"variant": case}), strict=True)
        out[case] = over_seeds([measured(run) | checked(base.set({**wanted, "run.seed": s})) for s, run in pairs])
    return out


def number(value: float) -> str:
    """Write three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def cell(spread: tuple[float, float, float] | None) -> str:
    """Write a mean, with its range where it has one."""
    if spread is None:
        return "unfinished"
    mean, low, high = map(number, spread)
    return mean if low == high else f"{mean} ({low} to {high})"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Write a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines) + "\n"


def seeds(numbers: Numbers, key: str) -> int:
    """Return under how many seeds something is so."""
    return round(numbers[key][0] * len(SEEDS))


def proof(numbers: Numbers) -> str:
    """Write what `xoff check` says."""
    proved, refuted = seeds(numbers, "proved"), seeds(numbers, "refuted")
    if proved == len(SEEDS):
        return "no"
    return f"yes: {refuted} of {len(SEEDS)}" if refuted else "not decided"


def least(results: Results, fabric: str, traffic: str) -> tuple[dict[tuple[str, str], float], float]:
    """Return the mean time of each case that finished, and the least."""
    times = {}
    for scheme in SCHEMES:
        for routing in ROUTINGS:
            spread = results.get(name(fabric, traffic, scheme, routing), {}).get("time_us")
            if spread is not None:
                times[scheme, routing] = spread[0]
    return times, min(times.values())


def best(results: Results, fabric: str, traffic: str) -> str:
    """Name the cases whose mean time is within 2% of the least."""
    times, shortest = least(results, fabric, traffic)
    near = {case: time for case, time in times.items() if time <= 1.02 * shortest}
    words = []
    for scheme in SCHEMES:
        routings = [routing for routing in ROUTINGS if (scheme, routing) in near]
        if len(routings) == len(ROUTINGS):
            words.append(scheme)
        elif routings:
            words.append(f"{scheme} ({routings[0]})")
    return f"{number(shortest)} us: " + ", ".join(words)


def choices(results: Results) -> Iterator[tuple[str, str, dict[tuple[str, str], Numbers]]]:
    """Yield each flow control and routing with its numbers by fabric and pattern."""
    for scheme in SCHEMES:
        for routing in ROUTINGS:
            found = {
                (fabric, traffic): results[case]
                for fabric in FABRICS
                for traffic in TRAFFICS
                if (case := name(fabric, traffic, scheme, routing)) in results
            }
            if found:
                yield scheme, routing, found


def findings(results: Results) -> str:
    """Write what stands out, in sentences."""
    near: dict[str, int] = {}
    buffers: dict[str, float] = {}
    calm, locked, lossy, free = [], [], [], []
    for scheme, routing, found in choices(results):
        case = f"{scheme} ({routing})"
        times = [(place, numbers["time_us"]) for place, numbers in found.items()]
        near[case] = sum(t is not None and t[0] <= 1.02 * least(results, *place)[1] for place, t in times)
        buffers[case] = max(numbers["buffer_kb"][2] for numbers in found.values())
        lost = any(numbers["lost"][2] for numbers in found.values())
        waits = [numbers["victim_ms"] for (_, traffic), numbers in found.items() if traffic == "incast"]
        if not lost and not any(wait is None or wait[2] for wait in waits):
            calm.append(case)
        if any(numbers["deadlocks"][2] for numbers in found.values()):
            locked.append(case)
        if all(proof(numbers) == "no" for numbers in found.values()):
            free.append(case)
        if lost and scheme not in ("none", "trimming"):
            lossy.append(case)
    fast = max(near, key=lambda case: near[case])
    small = min(buffers, key=lambda case: buffers[case])
    lines = [
        f"- **Least time**: {fast} is within 2% of it most often, in {near[fast]} of 16 cases.",
        f"- **No victims of the incast, and no loss**: {', '.join(calm) or 'none of them'}.",
        f"- **Least buffer**: {small}, with at most {number(buffers[small])} kB.",
        f"- **Deadlocks in the runs**: {', '.join(locked) or 'none'}.",
        f"- **Proved free of deadlocks in all cases**: {', '.join(free) or 'none'}. Trimming and *none* pause nothing.",
        f"- **Losses, of those that pause senders**: {', '.join(lossy) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def advice(results: Results) -> str:
    """Write for each fabric which flow control is the fastest, and which of those that promise to lose nothing."""
    rows = []
    for fabric in FABRICS:
        times = {}
        safe = {}
        for scheme, routing, found in choices(results):
            ours = {place: numbers for place, numbers in found.items() if place[0] == fabric}
            if len(ours) < len(TRAFFICS) or any(n["time_us"] is None for n in ours.values()):
                continue
            ratios = (n["time_us"][0] / least(results, *place)[1] for place, n in ours.items())
            case = f"{scheme} ({routing})"
            times[case] = statistics.mean(ratios)
            proved = all(proof(n) == "no" for n in ours.values())
            if proved and scheme not in ("none", "trimming") and not any(n["lost"][2] for n in ours.values()):
                safe[case] = ours
        cells = []
        for cases in (safe, times):
            best = min(cases, key=lambda case: times[case], default=None)
            cells.append(f"{best}: {times[best]:.2f}" if best else "none")
        calm = [case for case, ours in safe.items() if not ours[fabric, "incast"]["victim_ms"][2]]
        quiet = min(calm, key=lambda case: times[case], default=None)
        cells.insert(1, f"{quiet}: {times[quiet]:.2f}" if quiet else "none")
        rows.append([fabric, *cells])
    return table(
        ["fabric", "no loss, no deadlock", "and no victims of the incast", "the fastest of all"],
        rows,
    )


def overall(results: Results) -> str:
    """Write a row for each flow control, over all fabrics and patterns."""
    rows = []
    for scheme, routing, found in choices(results):
        times = [(case, numbers["time_us"]) for case, numbers in found.items()]
        slower = [time[0] / least(results, *case)[1] for case, time in times if time is not None]
        waits = (n["victim_ms"] for (_, traffic), n in found.items() if traffic == "incast")
        victims = [wait[0] for wait in waits if wait is not None]
        deadlocks = sum(seeds(n, "deadlocks") for n in found.values())
        proved = sum(proof(n) == "no" for n in found.values())
        rows.append(
            [
                scheme,
                routing,
                f"{sum(ratio <= 1.02 for ratio in slower)} of {len(found)}",
                f"{statistics.mean(slower):.2f}",
                f"{max(slower):.2f}",
                number(statistics.mean(victims)),
                number(max(n["buffer_kb"][2] for n in found.values())),
                number(max(n["lost"][2] for n in found.values())),
                f"{deadlocks} of {len(found) * len(SEEDS)}",
                f"{proved} of {len(found)}",
            ]
        )
    return table(
        [
            "flow control",
            "routing",
            "within 2% of the least time",
            "mean time / least",
            "worst time / least",
            "victims of the incast waited (ms), where all runs ended",
            "most buffer (kB)",
            "most packets lost or trimmed",
            "deadlocks",
            "proved free of deadlocks",
        ],
        rows,
    )


def details(results: Results, fabric: str) -> str:
    """Write the table of one fabric: a row for each pattern, flow control and routing."""
    rows = []
    for traffic in TRAFFICS:
        for scheme in SCHEMES:
            for routing in ROUTINGS:
                found = results.get(name(fabric, traffic, scheme, routing))
                if found is None:
                    continue
                rows.append(
                    [
                        traffic,
                        scheme,
                        routing,
                        *(cell(found[key]) for key in ("time_us", "p99", "victim_ms", "buffer_kb", "lost")),
                        f"{seeds(found, 'deadlocks')} of {len(SEEDS)}",
                        proof(found),
                    ]
                )
    return f"\n## {fabric}\n\n" + table(
        [
            "pattern",
            "flow control",
            "routing",
            "time (us)",
            "p99 slowdown",
            "victims waited (ms)",
            "buffer (kB)",
            "lost or trimmed",
            "deadlocks",
            "can deadlock",
        ],
        rows,
    )


HEAD = """# Which flow control for which fabric

<!-- Made by tools/which_flow_control.py. -->

Eight flow controls, with and without adaptive routing, on four fabrics under four patterns of traffic. *Time* is the time until everything is delivered, and *least* is the shortest mean time of all flow controls on that fabric under that pattern.

"""

ADVICE = """## What to choose

The number is the mean of time / least over the four patterns: 1.00 is the fastest under each of them. *No loss, no deadlock* is the fastest that lost no packet under any of the five seeds, and that `xoff check` proves free of deadlocks. *And no victims of the incast* is the fastest of these under which, in the pattern *incast*, no packet waited for a port that is not on its path.

"""

FINDINGS = """
What stands out:

"""

SETUP = """
## The set-up

Each fabric has 54 to 72 hosts and links of 100 Gbit/s (400 Gbit/s inside the servers of `rail-only`). A switch has 6 MB of buffer. Packets carry 4,096 B. Nothing controls congestion end to end, so the flow control alone decides. Each number is the mean over five seeds, with its least and greatest value.

| pattern | sends |
|---|---|
| incast | 32 hosts send 128 kB to one host. At the same time each host sends 1 MB to another one: the *others*. |
| all-to-all | each host sends 32 kB to every other |
| moe | two rounds of a mixture of experts: 16 experts, 64 tokens of 8 KiB for each host, two experts for each token |
| ring all-reduce | 8 MB of each host |

- **fixed paths**: the hash of a flow selects one shortest path.
- **adaptive**: [flowlets](schemes/adaptive-routing.md) take the emptiest of the shortest paths. Trimming sends each packet over a random one. On the dragonfly [UGAL](schemes/adaptive-routing.md) selects longer paths, too.
- Transport: go-back-N, but NDP with trimming, and IRN with *none* and with UGAL.
- PFC and CBFC have three [virtual channels](schemes/adaptive-routing.md) on the dragonfly. CBFC sends credits every 2 us.
- Trimming cuts packets at queues of eight packets.
- *unfinished*: under at least one seed not every flow completed. The means over fabrics and patterns leave such cases out.
- *p99 slowdown* is that of the others under the incast, else that of all flows.
- *Victims waited* is the time that packets of all flows waited because of ports that are not on their paths.
- *Buffer* is the largest packet memory in use in a switch or host, *lost or trimmed* counts packets, and *deadlocks* counts runs.
- *Can deadlock* is what [`xoff check`](CHECK.md) says of the routes of the five seeds, over all choices of adaptive routing. *No* is proved. *Yes* counts the seeds for which a simulation of the cycle deadlocks: buffers are full and all flows of the cycle send at once. *Not decided*: queues can wait for each other in a cycle, and no simulation of it deadlocked.

Missing rows are refused combinations: PortFC needs hosts that relay and fixed paths. [which.csv](data/which.csv) has the same numbers. One command makes the runs and this page:

<!-- test: not run: it takes minutes -->
```sh
python tools/which_flow_control.py
```
"""


def picture(results: Results) -> None:
    """Draw docs/which.svg: the time of each case over the least."""
    places = [(fabric, traffic) for fabric in FABRICS for traffic in TRAFFICS]
    rows = list(choices(results))
    mpl.rcParams.update({"svg.hashsalt": "xoff", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(10, 5.2), layout="constrained")
    shades = mpl.colormaps["YlOrRd"]
    for y, (_, _, found) in enumerate(rows):
        for x, place in enumerate(places):
            spread = found[place]["time_us"] if place in found else None
            ratio = spread[0] / least(results, *place)[1] if spread else None
            text = "refused"
            if ratio is not None:
                text = f"{ratio:.2f}"
            elif place in found:
                text = "dead-\nlock" if found[place]["deadlocks"][2] else "un-\nfinished"
            shade = 0.0 if ratio is None else min(1.0, ratio - 1.0) * 0.8
            colour = "#dddddd" if ratio is None else shades(shade)
            axes.add_patch(plt.Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white"))
            size = 9 if ratio else 6.5
            axes.text(
                x + 0.5,
                y + 0.5,
                text,
                ha="center",
                va="center",
                size=size,
                color="white" if shade > 0.55 else "black",
            )
    axes.set(xlim=(0, len(places)), ylim=(len(rows), 0))
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [f"{scheme}, {routing}" for scheme, routing, _ in rows])
    short = {"ring all-reduce": "all-reduce"}
    axes.set_xticks(
        [x + 0.5 for x in range(len(places))], [short.get(t, t) for _, t in places], rotation=45, ha="right"
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for x, fabric in zip(range(0, len(places), len(TRAFFICS)), FABRICS, strict=True):
        axes.text(x + len(TRAFFICS) / 2, -0.3, fabric, ha="center", weight="bold")
        axes.axvline(x, color="white", linewidth=4)
    axes.set_title("Time until everything is delivered / least time of all flow controls", pad=22)
    figure.savefig(PICTURE, metadata={"Date": None})


def page(results: Results) -> str:
    """Write docs/WHICH.md."""
    summary = table(
        ["fabric", *TRAFFICS],
        [[fabric, *(best(results, fabric, t) for t in TRAFFICS)] for fabric in FABRICS],
    )
    text = "\nThe least time until everything is delivered, and every flow control within 2% of it:\n\n"
    return (
        HEAD
        + ADVICE
        + advice(results)
        + FINDINGS
        + findings(results)
        + "\n"
        + "![Time of each flow control over the least, by fabric and pattern](which.svg)\n\n"
        + overall(results)
        + text
        + summary
        + SETUP
        + "".join(details(results, fabric) for fabric in FABRICS)
    )


def data(results: Results) -> str:
    """Write docs/data/which.csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    numbers = list(next(iter(results.values())))
    writer.writerow(
        [
            "fabric",
            "traffic",
            "scheme",
            "routing",
            *(f"{key}{end}" for key in numbers for end in ("", "_least", "_greatest")),
        ]
    )
    for case, values in results.items():
        spreads = (spread or ("", "", "") for spread in values.values())
        writer.writerow([*case.split(".."), *(x if x == "" else f"{x:.6g}" for spread in spreads for x in spread)])
    return out.getvalue()


def stored() -> Results:
    """Return the results in docs/data/which.csv."""
    results: Results = {}
    with DATA.open() as file:
        for row in csv.DictReader(file):
            case = name(*(row.pop(key) for key in ("fabric", "traffic", "scheme", "routing")))
            measures = [key for key in row if not key.endswith(("_least", "_greatest"))]
            ends = ("", "_least", "_greatest")
            results[case] = {
                key: tuple(float(row[key + end]) for end in ends) if row[key] else None for key in measures
            }
    return results


def main() -> None:
    """Make the runs and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the runs in this directory, and go on with those in it")
    parser.add_argument("--stored", action="store_true", help="make only the page, from docs/data/which.csv")
    args = parser.parse_args()
    if args.stored:
        PAGE.write_text(page(stored()))
        return
    base = xoff.Scenario.from_dict(BASE, name="which")
    good, _ = cases(base)
    grid = xoff.Grid(base, variants=good, seeds=SEEDS)
    runs = grid.run(out=args.out, resume=args.out is not None and args.out.exists())
    if not runs.complete:
        raise SystemExit("the grid is not complete: type the same command again")
    results = gather(base, good, runs)
    picture(results)
    PAGE.write_text(page(results))
    DATA.write_text(data(results))


if __name__ == "__main__":
    main()
