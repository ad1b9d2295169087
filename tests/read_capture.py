"""Captures as tshark and scapy read them, against what their bytes say by docs/CAPTURES.md and
against the tables of the same runs.

Usage: read_capture.py XOFF DIRECTORY
"""

import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import polars
import scapy_reader

ROOT = Path(__file__).resolve().parent.parent
LUA = ROOT / "wireshark" / "xoff.lua"
PAGE = ROOT / "docs" / "CAPTURES.md"

INBOUND, OUTBOUND, CRC_ERROR = 1, 2, 1 << 24
CELL = 10
WORD = 12
MAC_CONTROL = bytes.fromhex("0180c2000001")

INCAST, LOSSY = "tests/captures/incast.toml", "tests/captures/lossy.toml"
BOTTLENECK, RING, LOOP = "examples/tcp-bottleneck.toml", "examples/itsy.toml", "examples/watchdog.toml"
CUBE, LONG, VICTIMS = "examples/bcube-deadlock.toml", "examples/dci-stop.toml", "examples/incast-victims.toml"
BIFROST = ["flow_control.slot=5us", "topology.long_link.length=6km", "slow_receiver.0.stall_from=30us"]
BIFROST += ["host.buffer=100kB", "switch.buffer=4MB", "run.duration=400us"]
# Both switches of the dumbbell trim: the first link is slower than two hosts, and so is the last one.
TRIMMING = ["flow_control.scheme=trimming", "topology.bottleneck.rate=150Gbps", "traffic.1.dst=H2"]

# Name: scenario, ports, keys, and what there must be some of.
RUNS = {
    "pfc": (INCAST, "all", [], ["pause", "resume", "write-only", "padded"]),
    "dcqcn": (
        INCAST,
        "all",
        ["transport.congestion_control=dcqcn", "dcqcn.cnp_interval=5us"]
        + ["ecn.k_min=5kB", "ecn.k_max=30kB", "ecn.p_max=0.5"],
        ["ecn", "ce", "cnp", "pause"],
    ),
    "echo": (
        INCAST,
        "all",
        ["transport.congestion_control=dcqcn", "ecn.k_min=5kB", "ecn.k_max=30kB", "ecn.p_max=0.5"],
        ["ce", "becn"],
    ),
    "go-back-n": (LOSSY, "all", [], ["nak", "damaged"]),
    "irn": (LOSSY, "all", ["transport.kind=irn"], ["nak", "damaged"]),
    "rud": (LOSSY, "all", ["transport.kind=rud", "transport.rto=50us"], ["bitmap", "damaged"]),
    "rud-probes": (
        LOSSY,
        "all",
        ["transport.kind=rud", "transport.rto=500us", "rud.infer_losses=true", "rud.probes=true"]
        + ["loss.0.rate=0.2"],
        ["bitmap", "probe", "ACK of a probe", "damaged"],
    ),
    "rccc": (
        LOSSY,
        "all",
        ["transport.kind=rud", "transport.rto=50us", "transport.congestion_control=rccc"],
        ["credit", "bitmap", "damaged"],
    ),
    "nscc-rccc": (
        LOSSY,
        "all",
        ["transport.kind=rud", "transport.rto=50us", "transport.congestion_control=nscc+rccc", "rccc.in_acks=true"],
        ["credit", "ACK with credit", "damaged"],
    ),
    "trimming-ndp": (
        "examples/trimming.toml",
        "H3",
        ["run.duration=40us"],
        ["trimmed", "trimmed first", "PULL", "nak"],
    ),
    "trimming-rud": (
        LOSSY,
        "all",
        [*TRIMMING, "transport.kind=rud"],
        ["trimmed", "UET_TRIMMED", "UET_TRIMMED_LASTHOP"],
    ),
    "reps": (
        "examples/reps.toml",
        "H0",
        ["run.duration=20us", "run.drain=1ms"],
        ["label of data", "label of an ACK"],
    ),
    "tcp-newreno": (LOSSY, "all", ["transport.kind=tcp-newreno"], ["segment", "damaged"]),
    "tcp-dctcp": (
        BOTTLENECK,
        "S0.0",
        ["transport.kind=tcp-dctcp", "traffic.0.size=2MB", "traffic.1.size=2MB"]
        + ["ecn.k_min=20kB", "ecn.k_max=20kB", "ecn.p_max=1"],
        ["segment", "ce", "ece"],
    ),
    "pause": ("examples/pause.toml", "S0.0", ["traffic.0.size=200kB"], ["pause", "resume"]),
    "tagger": (INCAST, "switches", ["flow_control.scheme=tagger"], ["pause"]),
    "pfc-watchdog": (LOOP, "switches", ["run.duration=400us"], ["pause"]),
    "bifrost": (LONG, "DCI.1:4", ["flow_control.scheme=bifrost", *BIFROST], ["pause"]),
    "dsh": (
        INCAST,
        "all",
        ["flow_control.scheme=dsh", "flow_control.alpha=0.0005"],
        ["pause", "resume", "padded"],
    ),
    "swing": (LONG, "DCI.0,DCI.1", ["flow_control.scheme=swing", "run.duration=400us"], ["pause"]),
    "bfc": (INCAST, "switches", ["flow_control.scheme=bfc"], ["kind 1"]),
    "per-flow-queue": (INCAST, "switches", ["flow_control.scheme=per-flow-queue"], ["kind 2"]),
    "pyrrha": (
        VICTIMS,
        "S0.1,S1.0",
        ["flow_control.scheme=pyrrha", "run.duration=50us", "run.drain=0us"],
        ["root 0", "root 1", "root 2", "root 3"],
    ),
    "portfc": (CUBE, "S0.0,H1", ["flow_control.scheme=portfc", "run.duration=200us"], ["kind 3"]),
    "bifrostx": (
        LONG,
        "DCI.1:4",
        ["flow_control.scheme=bifrostx", *BIFROST],
        ["whole slot", "part of a slot"],
    ),
    "cbfc": (INCAST, "H0", ["flow_control.scheme=cbfc"], ["narrow"]),
    "cbfc-wide": (
        LONG,
        "S2.0",
        ["flow_control.scheme=cbfc", "flow_control.unlimited=true", "run.duration=100us"],
        ["wide"],
    ),
    "llr": ("examples/llr.toml", "S0.0", ["run.duration=40us", "loss.0.ber=1e-6"], ["kind 12", "word 1", "word 2"]),
    "uec-cbfc": (
        INCAST,
        "H0",
        ["flow_control.scheme=uec-cbfc", "flow_control.cc_period=5us", "flow_control.cf_max_spacing=1MiB"],
        ["kind 13", "consumed", "freed"],
    ),
    "gfc": (INCAST, "H0,switches", ["flow_control.scheme=gfc"], ["kind 11", "a stage", "line rate"]),
    "gfc-time": (
        INCAST,
        "H0,switches",
        # The period's frames fill the time before the late flow.
        ["flow_control.scheme=gfc", "flow_control.form=time", "traffic.3.start=1ms"],
        ["kind 14", "stored bytes", "nothing stored"],
    ),
    "loop-breaker": (
        LOOP,
        "switches",
        ["flow_control.scheme=loop-breaker", "flow_control.period=50us", "run.duration=400us"],
        ["kind 6"],
    ),
    "deadlock-breaker": (
        LOOP,
        "switches",
        ["flow_control.scheme=deadlock-breaker", "flow_control.period=50us", "run.duration=400us"],
        ["kind 6"],
    ),
    "roundabout": (
        RING,
        "S0,S2",
        ["flow_control.scheme=roundabout", "run.duration=500us"],
        [f"roundabout {opcode}" for opcode in range(1, 9)],
    ),
    "itsy": (RING, "S0,S2", ["run.duration=500us"], ["itsy"]),
    "zeropod": (
        "tests/captures/pods.toml",
        "H0,H4,S1.0,S2.1",
        ["zeropod.backpressure=4"],
        ["kind 8", "kind 9", "kind 10", "through a core", "optimistic", "acknowledged", "several parts"]
        + ["no room", "no SCHD", "damaged"],
    ),
    "zeropod-model": (
        "examples/zeropod.toml",
        "S0.0",
        ["zeropod.scheduled=false", "zeropod.collision=both", "zeropod.optimistic=1000"]
        + ["traffic.0.sizes=20kB", "run.duration=20us", "run.drain=10us"],
        ["optimistic", "damaged"],
    ),
}

# Frames of each kind that scapy reads in a capture: it is slow.
OF_EACH = 50
# Complaints of tshark that are printed.
OF_COMPLAINTS = 100

# Captures that are made again with a snap length.
CUT = [("dcqcn", 70), ("tcp-newreno", 54), ("roundabout", 176), ("roundabout", 60), ("pyrrha", 34)]
CUT += [("trimming-ndp", 50), ("cbfc", 15), ("uec-cbfc", 22), ("gfc", 20), ("gfc-time", 30), ("itsy", 14), ("zeropod", 46), ("zeropod", 20)]

# Where the filters of the page find something.
FILTERED = """
cbfc dcqcn dsh gfc gfc-time go-back-n llr trimming-ndp pause
rud rud-probes rccc pyrrha roundabout uec-cbfc zeropod
""".split()

FIELDS = """
frame.time_epoch frame.interface_name frame.len frame.cap_len frame.packet_flags eth.src eth.dst eth.type
ip.src ip.dst ip.dsfield.dscp ip.dsfield.ecn ip.checksum.status
udp.srcport udp.dstport infiniband.bth.opcode infiniband.bth.padcnt infiniband.reserved
infiniband.bth.destqp infiniband.bth.a infiniband.bth.psn infiniband.reth.r_key infiniband.reth.dmalen
infiniband.aeth.syndrome.opcode infiniband.aeth.syndrome.error_code infiniband.aeth.msn
tcp.srcport tcp.dstport tcp.seq_raw tcp.ack_raw tcp.len tcp.flags.ece tcp.checksum.status
macc.opcode macc.pause_time macc.cbfc.enbv macc.cbfc.pause_time.c3
xoff.kind xoff.pause xoff.priority xoff.queue xoff.flow xoff.port
xoff.root.word xoff.root.switch xoff.root.port xoff.root.epoch xoff.root.sequence
xoff.into.switch xoff.into.port xoff.into.epoch
xoff.feedback.enabled xoff.feedback.whole xoff.feedback.c_max xoff.feedback.c0 xoff.feedback.c3
xoff.stages.enabled xoff.stages.k0 xoff.stages.k3 xoff.stored.q0 xoff.stored.q3 xoff.link.word xoff.link.sequence
xoff.cf.vc xoff.cf.freed xoff.cc.consumed
xoff.probe.word xoff.probe.count xoff.probe.draw xoff.probe.from xoff.probe.port
xoff.credit.operand xoff.credit.lane xoff.credit.fctbs xoff.credit.fccl xoff.credit.lpcrc
xoff.ra.opcode xoff.ra.varlen xoff.ra.priority xoff.ra.hops xoff.ra.sid xoff.ra.qid
xoff.ra.rand xoff.ra.credit xoff.ra.state xoff.ra.node
xoff.itsy.priority xoff.itsy.sid xoff.itsy.qid xoff.itsy.number xoff.sack.first xoff.sack.bits
xoff.sack.probe xoff.pull.number xoff.grant.credit udp.length xoff.trim.missing
xoff.rts.mice_anew xoff.rts.accounts xoff.rts.sent xoff.rts.got xoff.rts.no_schd xoff.rts.sender
xoff.rts.epoch xoff.rts.earlier xoff.rts.demands xoff.rts.mice xoff.rts.full xoff.rts.asked
xoff.rts.served xoff.rts.bytes xoff.rts.full_pod xoff.target.host xoff.target.pod
xoff.schd.sender xoff.schd.epoch xoff.schd.aggregation xoff.schd.core xoff.schd.cells
xoff.cell.optimistic xoff.cell.source xoff.cell.destination xoff.cell.parts xoff.cell.part
xoff.cell.flow xoff.cell.first xoff.cell.acknowledged xoff.cell.bytes
_ws.malformed _ws.short
""".split()


def number(data, at, length):
    """An unsigned number in network order."""
    return int.from_bytes(data[at : at + length], "big")


def options(data):
    """The options that end a block, by code."""
    found, at = {}, 0
    while at < len(data):
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            break
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def read(path):
    """Names of interfaces, and packets as (interface, ns, flags, bytes, length)."""
    data, at, interfaces, packets = path.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4)[0] == length
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            told = options(body[8:])
            assert told[9] == b"\x09", "nanoseconds"
            interfaces.append(told[2].decode())
        elif kind == 6:
            interface, high, low, stored, original = struct.unpack_from("<5I", body)
            flags = struct.unpack("<I", options(body[20 + (stored + 3) // 4 * 4 :])[2])[0]
            packets.append((interface, high << 32 | low, flags, body[20 : 20 + stored], original))
        else:
            assert kind in (0x0A0D0D0A, 4), f"{path}: block {kind:#x}"
        at += length
    return interfaces, packets


def listed(values):
    """Values of a field that occurs several times, as tshark prints them."""
    return ",".join(map(str, values))


def targets(numbers):
    """Hosts and pods that data are for."""
    return {
        "xoff.target.host": listed(n for n in numbers if n < 2**31),
        "xoff.target.pod": listed(n - 2**31 for n in numbers if n >= 2**31),
    }


def rts(b, said, seen):
    """What a request of Zeropod says."""
    said |= {"xoff.rts.mice_anew": b[15] & 1, "xoff.rts.accounts": b[15] >> 1 & 1}
    said |= {"xoff.rts.sender": number(b, 16, 4), "xoff.rts.epoch": number(b, 20, 4)}
    if b[15] & 2:
        said |= {"xoff.rts.earlier": number(b, 24, 4), "xoff.rts.no_schd": b[15] >> 4 & 1}
        said |= {"xoff.rts.sent": b[15] >> 2 & 1, "xoff.rts.got": b[15] >> 3 & 1}
        seen["no SCHD"] += b[15] >> 4 & 1
    demands, mice, full = (number(b, at, 2) for at in (28, 30, 32))
    said |= {"xoff.rts.demands": demands, "xoff.rts.mice": mice, "xoff.rts.full": full}
    asks = [b[at : at + 12] for at in range(34, 34 + 12 * demands, 12)]
    small = [b[at : at + 16] for at in range(34 + 12 * demands, 34 + 12 * demands + 16 * mice, 16)]
    said |= targets([number(entry, 0, 4) for entry in asks + small])
    said["xoff.rts.asked"] = listed(number(ask, 4, 4) for ask in asks)
    said["xoff.rts.served"] = listed([number(ask, 8, 4) for ask in asks] + [number(one, 4, 4) for one in small])
    said["xoff.rts.bytes"] = listed(number(one, 8, 8) for one in small)
    last = 34 + 12 * demands + 16 * mice
    said["xoff.rts.full_pod"] = listed(number(b, last + 2 * i, 2) for i in range(full))
    seen["no room"] += full


def control(b, said, seen):
    """What a frame of EtherType 0x88B5 says."""
    kind = b[14]
    said["xoff.kind"] = kind
    seen[f"kind {kind}"] += 1
    if kind in (1, 2):
        name = "xoff.queue" if kind == 1 else "xoff.flow"
        said |= {"xoff.pause": b[15], "xoff.priority": b[16], name: number(b, 18, 4)}
    elif kind == 3:
        said |= {"xoff.pause": b[15], "xoff.queue": number(b, 16, 2), "xoff.port": number(b, 18, 2)}
    elif kind == 4:
        seen[f"root {b[15]}"] += 1
        said |= {"xoff.root.word": b[15], "xoff.priority": b[16], "xoff.root.sequence": number(b, 26, 2)}
        for name, at in [("root", 18), ("into", 28)][: 2 if b[15] == 2 else 1]:
            said[f"xoff.{name}.switch"] = number(b, at, 4)
            said[f"xoff.{name}.port"] = number(b, at + 4, 2)
            said[f"xoff.{name}.epoch"] = number(b, at + 6, 2)
    elif kind == 5:
        said |= {"xoff.feedback.enabled": f"0x{b[15]:02x}", "xoff.feedback.whole": b[16]}
        said["xoff.feedback.c_max"] = number(b, 18, 4)
        seen["whole slot" if b[16] else "part of a slot"] += 1
        for priority in (p for p in (0, 3) if b[15] >> p & 1):
            said[f"xoff.feedback.c{priority}"] = number(b, 22 + 4 * priority, 4)
    elif kind == 6:
        said |= {"xoff.probe.word": b[15], "xoff.priority": b[16], "xoff.probe.count": b[17]}
        said |= {"xoff.probe.draw": number(b, 18, 4), "xoff.probe.from": number(b, 22, 4)}
        said["xoff.probe.port"] = ",".join(str(number(b, 26 + 4 * i, 4)) for i in range(b[17]))
    elif kind == 7:
        p = b[16 : 16 + b[15]]
        said["xoff.credit.operand"] = p[1] >> 4
        if len(p) == 8:
            seen["narrow"] += 1
            values = p[3] >> 4, number(p, 1, 2) & 0xFFF, number(p, 3, 2) & 0xFFF, p[5:7]
        else:
            seen["wide"] += 1
            values = p[1] & 15, number(p, 4, 8), number(p, 12, 8), p[20:22]
        said |= dict(zip(["xoff.credit.lane", "xoff.credit.fctbs", "xoff.credit.fccl"], values))
        said["xoff.credit.lpcrc"] = f"0x{int.from_bytes(values[3], 'little'):04x}"
    elif kind == 8:
        rts(b, said, seen)
    elif kind == 9:
        said |= {"xoff.schd.sender": number(b, 16, 4), "xoff.schd.epoch": number(b, 20, 4)}
        said |= targets([number(b, 24, 4)])
        said |= {"xoff.schd.aggregation": number(b, 28, 4), "xoff.schd.cells": number(b, 36, 2)}
        if number(b, 32, 4) != 2**32 - 1:
            said["xoff.schd.core"] = number(b, 32, 4)
            seen["through a core"] += 1
    elif kind == 10:
        parts = [b[at : at + 18] for at in range(26, 26 + 18 * number(b, 24, 2), 18)]
        said |= {"xoff.cell.optimistic": b[15], "xoff.cell.parts": len(parts)}
        said |= {"xoff.cell.source": number(b, 16, 4), "xoff.cell.destination": number(b, 20, 4)}
        said["xoff.cell.part"] = listed(part[0] for part in parts)
        said["xoff.cell.flow"] = listed(number(part, 2, 4) for part in parts)
        said["xoff.cell.first"] = listed(number(part, 6, 8) for part in parts if part[0] == 0)
        said["xoff.cell.acknowledged"] = listed(number(part, 6, 8) for part in parts if part[0] == 1)
        said["xoff.cell.bytes"] = listed(number(part, 14, 4) for part in parts)
        seen["optimistic"] += b[15]
        seen["acknowledged"] += any(part[0] == 1 for part in parts)
        seen["several parts"] += len(parts) > 1
    elif kind == 11:
        said["xoff.stages.enabled"] = f"0x{b[15]:02x}"
        for priority in (p for p in (0, 3) if b[15] >> p & 1):
            said[f"xoff.stages.k{priority}"] = b[16 + priority]
            seen["a stage" if b[16 + priority] else "line rate"] += 1
    elif kind == 14:
        said["xoff.stages.enabled"] = f"0x{b[15]:02x}"
        for priority in (p for p in (0, 3) if b[15] >> p & 1):
            said[f"xoff.stored.q{priority}"] = number(b, 16 + 4 * priority, 4)
            seen["stored bytes" if said[f"xoff.stored.q{priority}"] else "nothing stored"] += 1
    elif kind == 12:
        said |= {"xoff.link.word": b[16], "xoff.link.sequence": number(b, 17, 3) >> 4}
        seen[f"word {b[16]}"] += 1
    elif kind == 13:
        halves = [number(b, at, 3) for at in (17, 20)]
        said["xoff.cf.vc"] = listed(half >> 19 for half in halves)
        said["xoff.cf.freed"] = listed(half >> 4 & 0x7FFF for half in halves)
        assert (b[15], b[16], b[19] & 15, b[22] & 15) == (0x5C, 0x10, 6, 0)
        seen["freed"] += any(half >> 4 & 0x7FFF for half in halves)
    else:
        raise AssertionError(f"kind {kind}")


def consumed(b, said, seen):
    """What a CC_Update says."""
    said["macc.opcode"] = "0xfffe"
    counts = [number(b, 20, 40) >> 20 * (15 - i) & 0xFFFFF for i in range(16)]
    said["xoff.cc.consumed"] = listed(counts)
    assert b[16:20] == bytes.fromhex("fa7acb01") and not any(counts[8:])
    seen["consumed"] += any(counts)


def pause(b, said, seen):
    """What a PAUSE frame says."""
    said |= {"macc.opcode": "0x0001", "macc.pause_time": number(b, 16, 2)}
    seen["pause" if number(b, 16, 2) else "resume"] += 1


def pfc(b, said, seen):
    """What a PFC frame says, and what lies in its padding."""
    said |= {"macc.opcode": "0x0101", "macc.cbfc.enbv": f"0x{number(b, 16, 2):04x}"}
    said["macc.cbfc.pause_time.c3"] = number(b, 24, 2)
    if b[17]:
        seen["pause" if number(b, 24, 2) else "resume"] += 1
    if b[34] == 0x80:
        seen["itsy"] += 1
        said |= {"xoff.itsy.priority": b[35], "xoff.itsy.sid": number(b, 36, 4)}
        said |= {"xoff.itsy.qid": number(b, 40, 2), "xoff.itsy.number": number(b, 42, 2)}
    elif b[34]:
        seen[f"roundabout {b[34]}"] += 1
        said |= {"xoff.ra.opcode": b[34], "xoff.ra.varlen": b[35], "xoff.ra.priority": b[36]}
        said |= {"xoff.ra.hops": b[37], "xoff.ra.sid": number(b, 38, 4), "xoff.ra.qid": number(b, 42, 2)}
        last = {6: "credit", 8: "state"}.get(b[34], "rand")
        said[f"xoff.ra.{last}"] = number(b, 44, 4)
        said["xoff.ra.node"] = ",".join(str(number(b, 48 + 4 * i, 4)) for i in range(b[35]))


def is_trimmed(b):
    """Whether a UDP packet is longer than the IP packet that has it."""
    return number(b, 38, 2) > number(b, 16, 2) - 20


def roce(b, said, seen):
    """What a RoCEv2 packet says."""
    opcode, psn = b[42], number(b, 51, 3)
    flow, length = number(b, 47, 3) & 0x7FFFFF, number(b, 38, 2)
    said |= {"udp.srcport": number(b, 34, 2), "udp.dstport": 4791, "udp.length": length}
    if number(b, 34, 2) != 49152 + flow % 16384:
        seen["label of data" if opcode <= 10 else "label of an ACK"] += 1
    if is_trimmed(b):
        said["xoff.trim.missing"] = length + 34 - len(b)
        # Wireshark reports the UDP length, and the RETH of a first packet.
        reth = ",[Malformed Packet: IB],_ws.malformed" if opcode in (6, 10) else ""
        said["_ws.malformed"] = "_ws.malformed" + reth
        seen["trimmed"] += 1
        seen["trimmed first"] += opcode == 6
        seen["trimmed at the last hop"] += b[15] >> 2 & 1
    said |= {"infiniband.bth.opcode": opcode, "infiniband.bth.padcnt": b[43] >> 4 & 3}
    said |= {"infiniband.bth.destqp": f"0x{number(b, 47, 3):06x}", "infiniband.bth.psn": psn}
    said |= {"infiniband.bth.a": b[50] >> 7, "infiniband.reserved": f"{b[46]:02x}"}
    seen["becn"] += b[46] == 0x40
    seen["padded"] += b[43] >> 4 & 3 > 0
    assert is_trimmed(b) or len(b) % 4 == 2, "whole words behind the Ethernet header"
    if is_trimmed(b):
        assert opcode in (6, 7, 8, 10), "data"
    elif opcode in (6, 10):
        said |= {"infiniband.reth.r_key": f"0x{number(b, 62, 4):08x}", "infiniband.reth.dmalen": number(b, 66, 4)}
        assert (opcode == 10) == (len(b) - 74 - (b[43] >> 4 & 3) == number(b, 66, 4)), "only: all of it"
        seen["write-only"] += opcode == 10
    elif opcode == 17:
        said |= {"infiniband.aeth.syndrome.opcode": b[54] >> 5, "infiniband.aeth.msn": number(b, 55, 3)}
        if b[54] == 0x60:
            said["infiniband.aeth.syndrome.error_code"] = 0
            seen["nak"] += 1
            seen[{1: "UET_TRIMMED", 2: "UET_TRIMMED_LASTHOP"}.get(number(b, 55, 3), "other code")] += 1
        else:
            assert b[54] == 0x1F
    elif opcode == 0x81:
        seen["cnp"] += 1
    elif opcode == 0xC0:
        said["xoff.pull.number"] = number(b, 55, 3)
        assert b[54] == 0 and number(b, 55, 3) > 0
        seen["PULL"] += 1
    elif opcode == 0xC1:
        said |= {"xoff.sack.first": number(b, 55, 3), "xoff.sack.bits": f"0x{number(b, 58, 8):016x}"}
        assert b[54] == 0 and number(b, 58, 8) > 0
        seen["bitmap"] += 1
    elif opcode == 0xC5:
        said |= {"xoff.sack.first": number(b, 55, 3), "xoff.sack.bits": f"0x{number(b, 58, 8):016x}"}
        said["xoff.grant.credit"] = number(b, 67, 3)
        assert b[54] == 0 and b[66] == 0
        seen["ACK with credit"] += 1
    elif opcode == 0xC3:
        said["xoff.sack.probe"] = number(b, 55, 3)
        assert b[54] == 0 and number(b, 55, 3) > 0
        seen["probe"] += 1
    elif opcode == 0xC4:
        said |= {"xoff.sack.probe": number(b, 55, 3), "xoff.sack.bits": f"0x{number(b, 58, 8):016x}"}
        assert b[54] == 0
        seen["ACK of a probe"] += 1
    elif opcode == 0xC2:
        said["xoff.grant.credit"] = number(b, 55, 3)
        assert b[54] == 0
        seen["credit"] += 1
    else:
        assert opcode in (7, 8), opcode


def tcp(b, said, seen):
    """What a TCP segment says."""
    total = number(b, 16, 2)
    said |= {"tcp.srcport": number(b, 34, 2), "tcp.dstport": number(b, 36, 2)}
    said |= {"tcp.seq_raw": number(b, 38, 4), "tcp.ack_raw": number(b, 42, 4), "tcp.len": total - 40}
    said |= {"tcp.flags.ece": b[47] >> 6 & 1, "tcp.checksum.status": 1}
    seen["ece"] += b[47] >> 6 & 1
    seen["segment"] += 1


def expected(interfaces, packet, seen):
    """The fields of a packet, by its bytes."""
    interface, time, flags, b, length = packet
    said = {
        "frame.time_epoch": f"{time // 10**9}.{time % 10**9:09}",
        "frame.interface_name": interfaces[interface],
        "frame.len": length,
        "frame.cap_len": len(b),
        "frame.packet_flags": f"0x{flags:08x}",
        "eth.dst": b[:6].hex(":"),
        "eth.src": b[6:12].hex(":"),
        "eth.type": f"0x{number(b, 12, 2):04x}",
    }
    seen["damaged"] += flags & CRC_ERROR > 0
    match number(b, 12, 2):
        case 0x0800:
            said |= {"ip.src": ".".join(map(str, b[26:30])), "ip.dst": ".".join(map(str, b[30:34]))}
            said |= {"ip.dsfield.dscp": b[15] >> 2, "ip.dsfield.ecn": b[15] & 3, "ip.checksum.status": 1}
            seen["ecn"] += b[15] & 3 == 2
            seen["ce"] += b[15] & 3 == 3
            (roce if b[23] == 17 else tcp)(b, said, seen)
        case 0x8808:
            {0x0001: pause, 0x0101: pfc, 0xFFFE: consumed}[number(b, 14, 2)](b, said, seen)
        case 0x88B5:
            control(b, said, seen)
        case other:
            raise AssertionError(f"EtherType {other:#x}")
    if number(b, 12, 2) != 0x0800:
        assert b[:6] == MAC_CONTROL and len(b) >= 60
    return {name: str(value) for name, value in said.items()}


def lines(path, *arguments):
    """What tshark says of a capture, in lines."""
    command = ["tshark", "-n", "-X", f"lua_script:{LUA}", "-r", path, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tshark(path, fields):
    """What tshark says of each packet."""
    checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
    named = [word for field in fields for word in ("-e", field)]
    told = lines(path, *checks, "-T", "fields", "-E", "occurrence=a", *named)
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in told]


def fields_of_dissector():
    """Every field that the dissector names."""
    return set(re.findall(r'ProtoField\.\w+\("(xoff\.[\w.]*\w)"', LUA.read_text()))


def errors(path):
    """What tshark takes for an error, or for packets that it cannot read.

    Wireshark takes it for an error that the UDP length of a trimmed packet is that of the whole packet,
    and that the RETH of a first packet is cut.
    """
    wrong = '_ws.expert.severity == "Error" || _ws.malformed || _ws.lua.error'
    trimmed = "udp.length.bad && xoff.trim.missing"
    texts = lines(path, "-Y", trimmed, "-T", "fields", "-E", "occurrence=a", "-e", "_ws.expert.message")
    others = [text for text in texts if not re.fullmatch(r"Bad length value \d+ > IP payload length(,Malformed Packet.*)?", text)]
    return (lines(path, "-Y", f"({wrong}) && !({trimmed})") + others)[:OF_COMPLAINTS]


def compare_tables(path, interfaces, packets):
    """The counts of the tables are those of the capture."""
    ports = polars.read_parquet(path.parent / "ports.parquet").rows_by_key("port", named=True, unique=True)
    sent, data, came = Counter(), Counter(), Counter()
    pauses = Counter()
    for interface, _, flags, b, _ in packets:
        name = interfaces[interface]
        if number(b, 12, 2) == 0x88B5 and b[14] == WORD:
            # The ordered sets of a link are no packets.
            continue
        if flags & 3 == INBOUND:
            came[name] += 1
            continue
        sent[name] += 1
        kind = number(b, 12, 2)
        is_data = kind == 0x0800 and (b[23] == 17 and b[42] <= 10 or b[23] == 6 and number(b, 16, 2) > 40)
        # Trimmed packets are not among the data packets.
        data[name] += is_data and not (b[23] == 17 and is_trimmed(b))
        data[name] += kind == 0x88B5 and b[14] == CELL
        if kind == 0x8808 and number(b, 14, 2) == 0x0101 and b[17]:
            pauses[name, number(b, 24, 2) > 0] += 1
        if kind == 0x8808 and number(b, 14, 2) == 0x0001:
            pauses[name, number(b, 16, 2) > 0] += 1
    is_llr = any(number(b, 12, 2) == 0x88B5 and b[14] == WORD for *_, b, _ in packets)
    is_pods = any(number(b, 12, 2) == 0x88B5 and b[14] == CELL for *_, b, _ in packets)
    for name in interfaces:
        port = ports[name]
        # RTS and SCHD that say nothing are counted, and not captured.
        counted = port["packets"] >= sent[name] if is_pods else port["packets"] == sent[name]
        assert counted, f"{path}: {name}: {port['packets']} packets, {sent[name]} captured"
        # Retransmissions of links are among the packets, and not among the data packets.
        whole = port["data_packets"] <= data[name] if is_llr else port["data_packets"] == data[name]
        assert whole, f"{path}: {name}: {port['data_packets']} data packets, {data[name]} captured"
        if pauses:
            counts = pauses[name, True], pauses[name, False]
            assert (port["pause_frames"], port["resume_frames"]) == counts, f"{path}: {name}"
        assert came[name] <= ports[port["peer"]]["packets"], f"{path}: {name}"
    flows = polars.read_parquet(path.parent / "flows.parquet")
    if set(ports) == set(interfaces):
        hosts = {f"{row['dst']}:0" for row in flows.to_dicts()}
        marked = sum(
            interfaces[i] in hosts and flags == INBOUND and b[15] & 3 == 3 and number(b, 12, 2) == 0x0800
            for i, _, flags, b, _ in packets
        )
        assert flows["marked"].sum() == marked, f"{path}: marks"


def capture(xoff, out, name, *more):
    """Runs a scenario; answers the capture."""
    scenario, ports, keys, _ = RUNS[name]
    command = [xoff, "run", ROOT / scenario, "--quiet", "--overwrite", "--out", out, "--pcap", ports, *more]
    done = subprocess.run(command + [w for key in keys for w in ("--set", key)], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return out / "capture.pcapng"


def check(xoff, out, name):
    """Runs a scenario and compares."""
    wanted = RUNS[name][3]
    path = capture(xoff, out / name, name)
    interfaces, packets = read(path)
    seen = Counter()
    told = tshark(path, FIELDS)
    assert len(told) == len(packets), f"{name}: {len(told)} of {len(packets)} packets"
    said_of, standard = set(), Counter()
    for i, (packet, fields) in enumerate(zip(packets, told)):
        said = expected(interfaces, packet, seen)
        real = {field: value for field, value in fields.items() if value != ""}
        said = {field: value for field, value in said.items() if value != ""}
        assert said == real, f"{path}, packet {i + 1}: {set(said.items()) ^ set(real.items())}"
        said_of |= {field for field in said if field.startswith("xoff.")}
        # Checksums of damaged frames fail, and trimmed packets lack theirs.
        kind = scapy_reader.kind(packet[3])
        is_whole = not packet[2] & CRC_ERROR and "xoff.trim.missing" not in said
        if kind and standard[kind] < OF_EACH and is_whole:
            scapy_reader.check(packet[3])
            standard[kind] += 1
    assert packets == sorted(packets, key=lambda packet: packet[1]), f"{name}: out of order"
    assert not (complaints := errors(path)), f"{path}: {complaints}"
    missing = [what for what in wanted if not seen[what]]
    assert not missing, f"{name}: no {missing} among {seen}"
    compare_tables(path, interfaces, packets)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(standard.items()))
    print(
        f"tshark agrees: {name}, {len(packets)} packets of {len(interfaces)} ports\n"
        f"scapy agrees: {kinds or 'no frame of a standard'}",
        flush=True,
    )
    return said_of


def check_cut(xoff, out, name, length):
    """A capture with a snap length has the beginnings of all packets, and no error."""
    path = capture(xoff, out / f"{name}-cut", name, "--pcap-snaplen", str(length))
    whole, cut = (read(p)[1] for p in (out / name / "capture.pcapng", path))
    assert [(*p[:3], p[3][:length], p[4]) for p in whole] == cut, f"{path}: packets differ"
    assert not (complaints := errors(path)), f"{path}: {complaints}"
    print(f"tshark agrees: {name}, with {length} bytes of each packet")


def check_wrong(out):
    """Frames that are not as they should be are told."""
    whole = (out / "pyrrha" / "capture.pcapng").read_bytes()
    path, good = out / "wrong.pcapng", bytes.fromhex("88b504")
    path.write_bytes(whole.replace(good, bytes.fromhex("88b563")))
    assert len(errors(path)) == min(whole.count(good), OF_COMPLAINTS) > 0, f"{path}: unknown kinds"
    print("tshark agrees: frames of an unknown kind")


def finds(out, wanted):
    """Whether a filter finds packets in some capture; small captures come first."""
    paths = sorted((out / name / "capture.pcapng" for name in FILTERED), key=lambda path: path.stat().st_size)
    return any(lines(path, "-Y", wanted) for path in paths)


def check_filters(every, out):
    """Each filter of the page finds packets in some capture."""
    page = PAGE.read_text().split("| filter | shows |")[1].split("\n\n")[0]
    filters = [f for row in page.splitlines() for f in re.findall("`(.*?)`", row.split("|")[1] if "|" in row else "")]
    assert len(filters) > 10, filters
    for wanted, found in zip(filters, every(finds, repeat(out), filters)):
        assert found, f"{PAGE}: `{wanted}` finds nothing"
    print(f"tshark agrees: {len(filters)} filters")


def main():
    if not shutil.which("tshark"):
        sys.exit("read_capture.py: there is no tshark here; on Debian: apt-get install tshark")
    xoff, out = Path(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # tshark and the checks take one core each.
    with ProcessPoolExecutor() as pool:
        seen = set().union(*pool.map(check, repeat(xoff), repeat(out), sys.argv[3:] or RUNS))
        if not sys.argv[3:]:
            unseen = fields_of_dissector() - seen
            assert not unseen, f"no capture has {unseen}"
            check_filters(pool.map, out)
            check_wrong(out)
            list(pool.map(check_cut, repeat(xoff), repeat(out), *zip(*CUT)))


main()
