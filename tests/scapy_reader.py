"""Frames of standards as scapy reads and writes them: neither knows anything of xoff.

scapy dissects a frame, and builds it anew from the fields that it has read, with its own checksums: of IP, TCP, and
the invariant CRC of RoCEv2. The bytes must be the same.
"""

import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause  # noqa: E402
from scapy.contrib.roce import AETH, BTH, CNPPadding  # noqa: E402
from scapy.layers.inet import IP, TCP  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402

PFC, PAUSE = bytes.fromhex("88080101"), bytes.fromhex("88080001")
# CNP, and the acknowledgement of a reliable connection.
CNP, ACKNOWLEDGE = 0x81, 0x11


def built_anew(frame):
    """The frame's layers, and its bytes as scapy writes them."""
    read = Ether(frame)
    if IP in read:
        del read[IP].len, read[IP].chksum
        if TCP in read:
            del read[TCP].chksum
        else:
            del read[BTH].icrc
    return read, bytes(read)


def kind(frame):
    """The kind of a frame of a standard; otherwise `None`."""
    if frame[12:16] == PFC:
        return "PFC"
    if frame[12:16] == PAUSE:
        return "PAUSE"
    if frame[12:14] != b"\x08\x00":
        return None
    return {CNP: "CNP", ACKNOWLEDGE: "ACK"}.get(frame[42], "RoCEv2") if frame[23] == 17 else "TCP"


def check(frame):
    """Compares a frame of a standard."""
    read, anew = built_anew(frame)
    assert anew == frame, f"scapy writes {anew.hex()} for {frame.hex()}"
    match kind(frame):
        case "PFC":
            layer = read[MACControlClassBasedFlowControl]
            for priority in range(8):
                enabled, quanta = frame[17] >> priority & 1, int.from_bytes(frame[18 + 2 * priority :][:2], "big")
                assert getattr(layer, f"c{priority}_enabled") == enabled, frame.hex()
                assert getattr(layer, f"c{priority}_pause_time") == quanta, frame.hex()
        case "PAUSE":
            assert read[MACControlPause].pause_time == int.from_bytes(frame[16:18], "big"), frame.hex()
        case "TCP":
            assert TCP in read, frame.hex()
        case what:
            layers = BTH in read, CNPPadding in read, AETH in read
            assert layers == (True, what == "CNP", what == "ACK"), frame.hex()
