#!/usr/bin/env python3
"""Make docs/WHICH.md: which flow control for which fabric.

One grid of four fabrics, four patterns of traffic, seven schemes, with and without adaptive routing, under five
seeds. `python tools/which_flow_control.py` makes the runs and the page; `--out DIR` keeps the runs, and the
same command with the same DIR goes on after an interruption.
"""

import argparse
import csv
import io
import statistics
import sys
from pathlib import Path

import xoff

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/WHICH.md"
DATA = ROOT / "docs/data/which.csv"
SEEDS = range(1, 6)

LINK = {"rate": "100Gbps", "delay": "500ns"}

# About 64 hosts each, all links of 100 Gbit/s; the fabric of two tiers is oversubscribed 2:1.
FABRICS = {
    "leaf-spine": {
        "topology": {
            "kind": "leaf-spine", "leaves": 8, "spines": 4, "hosts_per_leaf": 8,
            "host_link": LINK, "fabric_link": LINK,
        },
    },
    "3-tier": {"topology": {"kind": "fat-tree", "k": 6, "link": LINK}},
    "rail-only": {
        "topology": {
            "kind": "rail-only", "n": 8, "domain_link": {"rate": "400Gbps", "delay": "500ns"}, "rail_link": LINK,
        },
    },
    "dragonfly": {
        "topology": {
            "kind": "dragonfly", "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2, "link": LINK,
        },
        "routing.virtual_channels": 3,
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
            "kind": "moe", "experts": 16, "experts_per_token": 2, "tokens": 64, "token_size": "8KiB", "rounds": 2,
            "compute": "20us",
        },
    ],
    "ring all-reduce": [{"kind": "ring-all-reduce", "size": "8MB"}],
}

# All without congestion control, so that the flow control alone decides.
IRN = {"transport.kind": "irn"}
SCHEMES = {
    "PFC": {"flow_control.scheme": "pfc"},
    "BFC": {"flow_control.scheme": "bfc"},
    "Pyrrha": {"flow_control.scheme": "pyrrha"},
    "PortFC": {"flow_control.scheme": "portfc"},
    "CBFC": {"flow_control.scheme": "cbfc"},
    "trimming": {"flow_control.scheme": "trimming", "transport.kind": "ndp"},
    "none": {"flow_control.scheme": "none", "transport.kind": "irn"},
}

# Adaptive routing: flowlets for transports that a reordered packet costs a retransmission, packets for NDP, and
# UGAL where paths differ in length.
ROUTINGS = {"fixed paths": None, "adaptive": "adaptive"}


def keys(fabric: str, traffic: str, scheme: str, routing: str) -> dict[str, object]:
    """Everything that a run sets."""
    out: dict[str, object] = {**FABRICS[fabric], "traffic": TRAFFICS[traffic], **SCHEMES[scheme]}
    if routing == "adaptive":
        if fabric == "dragonfly":
            out["routing.load_balancing"] = "ugal"
        elif scheme == "trimming":
            out["routing.load_balancing"] = "spray"
        else:
            out["routing.load_balancing"] = "adaptive"
            out["routing.adaptive.granularity"] = "flowlet"
    return out
