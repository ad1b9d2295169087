"""Writes Chakra execution traces of an interleaved 1F1B schedule: interleaved-V.R.et for V chunks on rank R.

Narayanan et al., SC 2021, section 2.2: each of 4 stages has V chunks of layers, and 8 micro-batches pass through all
chunks. A micro-batch takes 500 us forward and 1 ms backward in a stage, divided evenly among its chunks. The order of
the passes is that of Megatron-LM. Run it in this folder: python3 make.py
"""

import gzip

STAGES, MICRO_BATCHES = 4, 8
FORWARD, BACKWARD = 500, 1000  # microseconds of a stage
ACTIVATIONS = 8192  # bytes
COMP, SEND, RECV = 4, 5, 6  # NodeType of et_def.proto


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


def passes(rank, chunks):
    """The passes of a rank in their order: backward or not, chunk, micro-batch."""
    total = MICRO_BATCHES * chunks

    def at(k, backward):
        chunk = k % (STAGES * chunks) // STAGES
        micro_batch = k // (STAGES * chunks) * STAGES + k % STAGES
        return backward, chunks - 1 - chunk if backward else chunk, micro_batch

    first = min(total, 2 * (STAGES - 1 - rank) + (chunks - 1) * STAGES)
    order = [at(k, False) for k in range(first)]
    for k in range(first, total):
        order += [at(k, False), at(k - first, True)]
    return order + [at(k, True) for k in range(total - first, total)]


def neighbour(rank, chunk, chunks, step):
    """The rank and chunk of the pass after this one (step 1) or before it (-1), if there is one."""
    position = chunk * STAGES + rank + step
    return (position % STAGES, position // STAGES) if 0 <= position < STAGES * chunks else None


def tag(backward, chunk, micro_batch):
    return (int(backward) * 16 + chunk) * MICRO_BATCHES + micro_batch


def trace(rank, chunks):
    nodes, last = [], []

    def add(*args, **attributes):
        nodes.append(node(len(nodes), *args, is_cpu_op=False, **attributes))
        return len(nodes) - 1

    for backward, chunk, micro_batch in passes(rank, chunks):
        step = -1 if backward else 1
        name = f"{'backward' if backward else 'forward'} {chunk} of {micro_batch}"
        deps = list(last)
        before = neighbour(rank, chunk, chunks, -step)
        if before:
            number_of = tag(backward, chunk, micro_batch)
            peer = {"comm_src": before[0], "comm_tag": number_of, "comm_size": ACTIVATIONS}
            deps.append(add(f"receive for {name}", RECV, [], **peer))
        micros = (BACKWARD if backward else FORWARD) // chunks
        last = [add(name, COMP, deps, micros)]
        after = neighbour(rank, chunk, chunks, step)
        if after:
            number_of = tag(backward, after[1], micro_batch)
            peer = {"comm_dst": after[0], "comm_tag": number_of, "comm_size": ACTIVATIONS}
            add(f"send after {name}", SEND, last, **peer)
    messages = [message(1, b"0.0.4"), *nodes]
    return b"".join(varint(len(content)) + content for content in messages)


for chunks in (2, 4):
    for rank in range(STAGES):
        with open(f"interleaved-{chunks}.{rank}.et", "wb") as file:
            file.write(gzip.compress(trace(rank, chunks), mtime=0))
