"""Writes the Chakra execution traces of overlap.toml: overlap.0.et to overlap.7.et.

A training step of data parallelism with 8 ranks and 4 layers: forward, backward, and an all-reduce of the gradients
of each layer, which overlaps the backward of the layers before it. Run it in this folder: python3 make.py
"""

RANKS, LAYERS = 8, 4
FORWARD, BACKWARD, OPTIMIZER = 300, 600, 200  # microseconds
GRADIENTS = 20_000_000  # bytes of each layer
COMP, COLL, ALL_REDUCE = 4, 7, 0  # NodeType and CollectiveCommType of et_def.proto


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(id, name, kind, deps, micros=0, **attributes):
    content = number(1, id) + message(2, name.encode()) + number(3, kind)
    content += b"".join(number(5, dep) for dep in deps)  # data_deps
    content += number(7, micros)
    for key, value in attributes.items():
        field = 27 if isinstance(value, bool) else 9  # bool_val or int64_val
        content += message(10, message(1, key.encode()) + number(field, value))
    return content


def trace():
    nodes, last, reduced = [], [], []
    for layer in range(LAYERS):
        id = len(nodes)
        nodes.append(node(id, f"forward {layer}", COMP, last, FORWARD, is_cpu_op=False))
        last = [id]
    for layer in reversed(range(LAYERS)):
        id = len(nodes)
        nodes.append(node(id, f"backward {layer}", COMP, last, BACKWARD, is_cpu_op=False))
        size = {"comm_type": ALL_REDUCE, "comm_size": GRADIENTS}
        nodes.append(node(id + 1, f"gradients {layer}", COLL, [id], is_cpu_op=False, **size))
        last = [id]
        reduced.append(id + 1)
    nodes.append(node(len(nodes), "optimizer", COMP, reduced, OPTIMIZER, is_cpu_op=False))
    messages = [message(1, b"0.0.4"), *nodes]
    return b"".join(varint(len(content)) + content for content in messages)


for rank in range(RANKS):
    with open(f"overlap.{rank}.et", "wb") as file:
        file.write(trace())
