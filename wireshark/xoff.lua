-- Wireshark dissector of the frames of xoff's schemes: EtherType 0x88B5 (IEEE 802 local
-- experimental 1), the headers of Roundabout and ITSY in the padding of PFC frames, the
-- CC_Updates of UEC CBFC, which are frames of MAC control, trimmed packets, the bitmaps in ACKs of
-- RUD, the PULLs of NDP, and the credit of RCCC.
-- docs/CAPTURES.md has the layouts.
--
--   tshark -X lua_script:wireshark/xoff.lua -r capture.pcapng -Y xoff
--
-- Or copy it to the folder of personal Lua plugins (Help > About Wireshark > Folders).

local xoff = Proto("xoff", "xoff flow control")

local ETHERTYPE = 0x88b5
local MAC_CONTROL = 0x8808
local PFC = 0x0101
-- The opcode of MAC control that CC_Updates have, and the company that it names.
local EXTENSION, UEC = 0xfffe, 0xfa7acb
-- The end of the eight times of a PFC frame, counted from the end of its EtherType.
local QUANTA = 20

local kinds = {
    [1] = "queue pause", [2] = "flow pause", [3] = "port pause (PortFC)", [4] = "root pause (Pyrrha)",
    [5] = "feedback (BifrostX)", [6] = "probe", [7] = "credit (CBFC)",
    [8] = "RTS (Zeropod)", [9] = "SCHD (Zeropod)", [10] = "cell (Zeropod)",
    [11] = "stages (GFC)", [12] = "ordered set (LLR)", [13] = "CF_Update (UEC CBFC)",
    [14] = "stored bytes (GFC)",
}
local pauses = { [0] = "resume", [1] = "pause" }
local link_words = { [1] = "LLR_ACK", [2] = "LLR_NACK", [3] = "LLR_INIT", [4] = "LLR_INIT_ECHO" }
local root_words = { [0] = "RESUME", [1] = "PAUSE", [2] = "MERGE", [3] = "RELEASE" }
local probe_words = { [1] = "probe", [2] = "room" }
local operands = { [0] = "normal", [1] = "initialise", [2] = "wide" }
local ra_opcodes = {
    [1] = "probe", [2] = "invalid", [3] = "announcement", [4] = "collect", [5] = "build",
    [6] = "credit", [7] = "barrier", [8] = "check",
}
local part_kinds = { [0] = "data", [1] = "acknowledgement" }
-- The bit of a target that is another pod, not a host.
local POD = 0x80000000
local NO_CORE = 0xffffffff
local RA_CREDIT, RA_CHECK, ITSY_CHECK = 6, 8, 0x80

local f = {
    kind = ProtoField.uint8("xoff.kind", "Kind", base.DEC, kinds),
    pause = ProtoField.uint8("xoff.pause", "Message", base.DEC, pauses),
    priority = ProtoField.uint8("xoff.priority", "Priority"),
    queue = ProtoField.uint32("xoff.queue", "Queue"),
    flow = ProtoField.uint32("xoff.flow", "Flow"),
    port = ProtoField.uint16("xoff.port", "Congested port"),
    root_word = ProtoField.uint8("xoff.root.word", "Message", base.DEC, root_words),
    root_switch = ProtoField.uint32("xoff.root.switch", "Root: switch"),
    root_port = ProtoField.uint16("xoff.root.port", "Root: port"),
    root_epoch = ProtoField.uint16("xoff.root.epoch", "Root: epoch"),
    sequence = ProtoField.uint16("xoff.root.sequence", "Sequence number"),
    into_switch = ProtoField.uint32("xoff.into.switch", "Into: switch"),
    into_port = ProtoField.uint16("xoff.into.port", "Into: port"),
    into_epoch = ProtoField.uint16("xoff.into.epoch", "Into: epoch"),
    enabled = ProtoField.uint8("xoff.feedback.enabled", "Priorities", base.HEX),
    whole = ProtoField.bool("xoff.feedback.whole", "The whole slot is granted"),
    c_max = ProtoField.uint32("xoff.feedback.c_max", "c_max (bytes)"),
    named = ProtoField.uint8("xoff.stages.enabled", "Priorities", base.HEX),
    link_word = ProtoField.uint8("xoff.link.word", "Word", base.DEC, link_words),
    link_number = ProtoField.uint24("xoff.link.sequence", "Sequence number"),
    cf_channel = ProtoField.uint8("xoff.cf.vc", "Virtual channel"),
    cf_freed = ProtoField.uint16("xoff.cf.freed", "Credits freed, lowest 15 bits"),
    cc_consumed = ProtoField.uint24("xoff.cc.consumed", "Credits consumed"),
    probe_word = ProtoField.uint8("xoff.probe.word", "Message", base.DEC, probe_words),
    probe_count = ProtoField.uint8("xoff.probe.count", "Ports listed"),
    probe_draw = ProtoField.uint32("xoff.probe.draw", "Draw"),
    probe_from = ProtoField.uint32("xoff.probe.from", "Origin: port"),
    probe_port = ProtoField.uint32("xoff.probe.port", "Port"),
    operand = ProtoField.uint8("xoff.credit.operand", "Operand", base.DEC, operands),
    lane = ProtoField.uint8("xoff.credit.lane", "Virtual lane"),
    fctbs = ProtoField.uint64("xoff.credit.fctbs", "FCTBS (blocks of 64 B)"),
    fccl = ProtoField.uint64("xoff.credit.fccl", "FCCL (blocks of 64 B)"),
    lpcrc = ProtoField.uint16("xoff.credit.lpcrc", "LPCRC", base.HEX),
    ra_opcode = ProtoField.uint8("xoff.ra.opcode", "Opcode", base.DEC, ra_opcodes),
    ra_count = ProtoField.uint8("xoff.ra.varlen", "Nodes listed (varLen)"),
    ra_priority = ProtoField.uint8("xoff.ra.priority", "Priority"),
    ra_hops = ProtoField.uint8("xoff.ra.hops", "Links crossed"),
    ra_sid = ProtoField.uint32("xoff.ra.sid", "Switch (sid)"),
    ra_qid = ProtoField.uint16("xoff.ra.qid", "Ingress queue (qid)"),
    ra_rand = ProtoField.uint32("xoff.ra.rand", "rand"),
    ra_credit = ProtoField.uint32("xoff.ra.credit", "Credit (bytes)"),
    ra_state = ProtoField.uint32("xoff.ra.state", "State of the check"),
    ra_node = ProtoField.uint32("xoff.ra.node", "Node"),
    rts_mice_anew = ProtoField.bool("xoff.rts.mice_anew", "New list of mice"),
    rts_accounts = ProtoField.bool("xoff.rts.accounts", "Reports an earlier epoch"),
    rts_sent = ProtoField.bool("xoff.rts.sent", "Sent data in the earlier epoch"),
    rts_got = ProtoField.bool("xoff.rts.got", "Received data in the earlier epoch"),
    rts_no_schd = ProtoField.bool("xoff.rts.no_schd", "Received no SCHD in the earlier epoch"),
    rts_sender = ProtoField.uint32("xoff.rts.sender", "Sender: node"),
    rts_epoch = ProtoField.uint32("xoff.rts.epoch", "Epoch"),
    rts_earlier = ProtoField.uint32("xoff.rts.earlier", "Earlier epoch"),
    rts_demands = ProtoField.uint16("xoff.rts.demands", "Demands"),
    rts_mice = ProtoField.uint16("xoff.rts.mice", "Targets of mice"),
    rts_full = ProtoField.uint16("xoff.rts.full", "Pods without room"),
    rts_asked = ProtoField.uint32("xoff.rts.asked", "Cells requested in total"),
    rts_served = ProtoField.uint32("xoff.rts.served", "Cells served in total"),
    rts_bytes = ProtoField.uint64("xoff.rts.bytes", "Bytes waiting"),
    rts_full_pod = ProtoField.uint16("xoff.rts.full_pod", "Pod without room"),
    target_host = ProtoField.uint32("xoff.target.host", "Target: host (node)"),
    target_pod = ProtoField.uint32("xoff.target.pod", "Target: pod"),
    schd_sender = ProtoField.uint32("xoff.schd.sender", "Sender: node"),
    schd_epoch = ProtoField.uint32("xoff.schd.epoch", "Epoch"),
    schd_aggregation = ProtoField.uint32("xoff.schd.aggregation", "Aggregation switch: node"),
    schd_core = ProtoField.uint32("xoff.schd.core", "Core: node"),
    schd_cells = ProtoField.uint16("xoff.schd.cells", "Cells"),
    cell_optimistic = ProtoField.bool("xoff.cell.optimistic", "Sent without a grant"),
    cell_source = ProtoField.uint32("xoff.cell.source", "Source: node"),
    cell_destination = ProtoField.uint32("xoff.cell.destination", "Destination: node"),
    cell_parts = ProtoField.uint16("xoff.cell.parts", "Parts"),
    cell_part = ProtoField.uint8("xoff.cell.part", "Part", base.DEC, part_kinds),
    cell_flow = ProtoField.uint32("xoff.cell.flow", "Flow"),
    cell_first = ProtoField.uint64("xoff.cell.first", "First byte in the flow"),
    cell_acknowledged = ProtoField.uint64("xoff.cell.acknowledged", "Bytes acknowledged"),
    cell_bytes = ProtoField.uint32("xoff.cell.bytes", "Bytes"),
    itsy_priority = ProtoField.uint8("xoff.itsy.priority", "Priority"),
    itsy_sid = ProtoField.uint32("xoff.itsy.sid", "Switch (sid)"),
    itsy_qid = ProtoField.uint16("xoff.itsy.qid", "Ingress queue (qid)"),
    itsy_number = ProtoField.uint16("xoff.itsy.number", "Number"),
    trim_missing = ProtoField.uint16("xoff.trim.missing", "Bytes cut off"),
    pull_number = ProtoField.uint24("xoff.pull.number", "PULLs of the flow so far"),
    grant_credit = ProtoField.uint24("xoff.grant.credit", "Credit of the flow so far (256 B)"),
    sack_probe = ProtoField.uint24("xoff.sack.probe", "Number of the probe"),
    sack_first = ProtoField.uint24("xoff.sack.first", "PSN of the first bit"),
    sack_bits = ProtoField.uint64("xoff.sack.bits", "Packets that have arrived, the first one last", base.HEX),
}
local grants = {}
for priority = 0, 7 do
    local name = "c" .. priority
    grants[priority] = ProtoField.uint32("xoff.feedback." .. name, name .. " (bytes)")
    f[name] = grants[priority]
end
local stages = {}
for priority = 0, 7 do
    local name = "k" .. priority
    stages[priority] = ProtoField.uint8("xoff.stages." .. name, "Stage of priority " .. priority)
    f[name] = stages[priority]
end
local stored = {}
for priority = 0, 7 do
    local name = "q" .. priority
    stored[priority] = ProtoField.uint32("xoff.stored." .. name, "Stored bytes of priority " .. priority)
    f[name] = stored[priority]
end
local fields = {}
for _, field in pairs(f) do
    fields[#fields + 1] = field
end
xoff.fields = fields

local short = ProtoExpert.new("xoff.short", "The frame is shorter than its fields",
    expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("xoff.unknown", "Unknown kind", expert.group.UNDECODED, expert.severity.ERROR)
xoff.experts = { short, unknown }

-- A function for each kind adds its fields and returns the text of the Info column.
-- `at(n, length)` is the range that begins at byte n of the whole frame.

local function queue_pause(at, tree)
    tree:add(f.pause, at(15, 1))
    tree:add(f.priority, at(16, 1))
    local flow = at(14, 1):uint() == 2
    tree:add(flow and f.flow or f.queue, at(18, 4))
    return string.format("%s of %s %d, priority %d", pauses[at(15, 1):uint()] or "?",
        flow and "flow" or "queue", at(18, 4):uint(), at(16, 1):uint())
end

local function port_pause(at, tree)
    tree:add(f.pause, at(15, 1))
    tree:add(f.queue, at(16, 2))
    tree:add(f.port, at(18, 2))
    return string.format("%s of port %d, queue %d", pauses[at(15, 1):uint()] or "?",
        at(18, 2):uint(), at(16, 2):uint())
end

local function root_pause(at, tree)
    local word = at(15, 1):uint()
    tree:add(f.root_word, at(15, 1))
    tree:add(f.priority, at(16, 1))
    tree:add(f.root_switch, at(18, 4))
    tree:add(f.root_port, at(22, 2))
    tree:add(f.root_epoch, at(24, 2))
    tree:add(f.sequence, at(26, 2))
    if word == 2 then
        tree:add(f.into_switch, at(28, 4))
        tree:add(f.into_port, at(32, 2))
        tree:add(f.into_epoch, at(34, 2))
    end
    return string.format("%s of root %d:%d, priority %d", root_words[word] or "?",
        at(18, 4):uint(), at(22, 2):uint(), at(16, 1):uint())
end

local function feedback(at, tree)
    local enabled = at(15, 1):uint()
    tree:add(f.enabled, at(15, 1))
    tree:add(f.whole, at(16, 1))
    tree:add(f.c_max, at(18, 4))
    for priority = 0, 7 do
        if math.floor(enabled / 2 ^ priority) % 2 == 1 then
            tree:add(grants[priority], at(22 + 4 * priority, 4))
        end
    end
    if at(16, 1):uint() == 1 then
        return "whole slot granted"
    end
    return string.format("%d bytes", at(18, 4):uint())
end

local function stage(at, tree)
    local enabled = at(15, 1):uint()
    tree:add(f.named, at(15, 1))
    local words = {}
    for priority = 0, 7 do
        if math.floor(enabled / 2 ^ priority) % 2 == 1 then
            tree:add(stages[priority], at(16 + priority, 1))
            words[#words + 1] = string.format("stage %d of priority %d", at(16 + priority, 1):uint(), priority)
        end
    end
    return table.concat(words, ", ")
end

local function stored_bytes(at, tree)
    local enabled = at(15, 1):uint()
    tree:add(f.named, at(15, 1))
    local words = {}
    for priority = 0, 7 do
        if math.floor(enabled / 2 ^ priority) % 2 == 1 then
            local field = at(16 + 4 * priority, 4)
            tree:add(stored[priority], field)
            words[#words + 1] = string.format("%d B of priority %d", field:uint(), priority)
        end
    end
    return table.concat(words, ", ")
end

local function probe(at, tree)
    local count = at(17, 1):uint()
    tree:add(f.probe_word, at(15, 1))
    tree:add(f.priority, at(16, 1))
    tree:add(f.probe_count, at(17, 1))
    tree:add(f.probe_draw, at(18, 4))
    tree:add(f.probe_from, at(22, 4))
    for i = 0, count - 1 do
        tree:add(f.probe_port, at(26 + 4 * i, 4))
    end
    return string.format("%s %d:%d, priority %d", probe_words[at(15, 1):uint()] or "?",
        at(18, 4):uint(), at(22, 4):uint(), at(16, 1):uint())
end

local function credit(at, tree)
    -- The link packet begins at byte 16, with its start delimiter.
    local wide = at(15, 1):uint() == 24
    tree:add(f.operand, at(17, 1), at(17, 1):bitfield(0, 4))
    local lane, sent, limit, check
    if wide then
        lane, sent, limit, check = at(17, 1):bitfield(4, 4), at(20, 8):uint64(), at(28, 8):uint64(), at(36, 2)
        tree:add(f.lane, at(17, 1), lane)
        tree:add(f.fctbs, at(20, 8))
        tree:add(f.fccl, at(28, 8))
    else
        lane, check = at(19, 1):bitfield(0, 4), at(21, 2)
        sent, limit = UInt64(at(17, 2):bitfield(4, 12)), UInt64(at(19, 2):bitfield(4, 12))
        tree:add(f.lane, at(19, 1), lane)
        tree:add(f.fctbs, at(17, 2), sent)
        tree:add(f.fccl, at(19, 2), limit)
    end
    tree:add_le(f.lpcrc, check)
    return string.format("lane %d: sent %s, limit %s", lane, tostring(sent), tostring(limit))
end

local function target(range, tree)
    local number = range:uint()
    if number >= POD then
        tree:add(f.target_pod, range, number - POD)
        return "pod " .. number - POD
    end
    tree:add(f.target_host, range)
    return "node " .. number
end

-- The lengths of the three lists of an RTS, and the end of the last one.
local function rts_lists(at)
    local demands, mice, full = at(28, 2):uint(), at(30, 2):uint(), at(32, 2):uint()
    return demands, mice, full, 34 + 12 * demands + 16 * mice + 2 * full
end

local function rts(at, tree)
    local demands, mice, full = rts_lists(at)
    local accounts = at(15, 1):bitfield(6, 1) == 1
    tree:add(f.rts_mice_anew, at(15, 1), at(15, 1):bitfield(7, 1) == 1)
    tree:add(f.rts_accounts, at(15, 1), accounts)
    tree:add(f.rts_sender, at(16, 4))
    tree:add(f.rts_epoch, at(20, 4))
    if accounts then
        tree:add(f.rts_earlier, at(24, 4))
        tree:add(f.rts_sent, at(15, 1), at(15, 1):bitfield(5, 1) == 1)
        tree:add(f.rts_got, at(15, 1), at(15, 1):bitfield(4, 1) == 1)
        tree:add(f.rts_no_schd, at(15, 1), at(15, 1):bitfield(3, 1) == 1)
    end
    tree:add(f.rts_demands, at(28, 2))
    tree:add(f.rts_mice, at(30, 2))
    tree:add(f.rts_full, at(32, 2))
    local n = 34
    for _ = 1, demands do
        target(at(n, 4), tree)
        tree:add(f.rts_asked, at(n + 4, 4))
        tree:add(f.rts_served, at(n + 8, 4))
        n = n + 12
    end
    for _ = 1, mice do
        target(at(n, 4), tree)
        tree:add(f.rts_served, at(n + 4, 4))
        tree:add(f.rts_bytes, at(n + 8, 8))
        n = n + 16
    end
    for _ = 1, full do
        tree:add(f.rts_full_pod, at(n, 2))
        n = n + 2
    end
    return string.format("of node %d, epoch %d: %d demands, mice for %d, %d pods without room",
        at(16, 4):uint(), at(20, 4):uint(), demands, mice, full)
end

local function schd(at, tree)
    tree:add(f.schd_sender, at(16, 4))
    tree:add(f.schd_epoch, at(20, 4))
    local receiver = target(at(24, 4), tree)
    tree:add(f.schd_aggregation, at(28, 4))
    if at(32, 4):uint() ~= NO_CORE then
        tree:add(f.schd_core, at(32, 4))
    end
    tree:add(f.schd_cells, at(36, 2))
    return string.format("node %d may send %d cells to %s in epoch %d",
        at(16, 4):uint(), at(36, 2):uint(), receiver, at(20, 4):uint())
end

local function cell(at, tree)
    local parts = at(24, 2):uint()
    tree:add(f.cell_optimistic, at(15, 1))
    tree:add(f.cell_source, at(16, 4))
    tree:add(f.cell_destination, at(20, 4))
    tree:add(f.cell_parts, at(24, 2))
    for n = 26, 26 + 18 * (parts - 1), 18 do
        tree:add(f.cell_part, at(n, 1))
        tree:add(f.cell_flow, at(n + 2, 4))
        local acknowledges = at(n, 1):uint() == 1
        tree:add(acknowledges and f.cell_acknowledged or f.cell_first, at(n + 6, 8))
        tree:add(f.cell_bytes, at(n + 14, 4))
    end
    return string.format("node %d to node %d, %d parts%s", at(16, 4):uint(), at(20, 4):uint(), parts,
        at(15, 1):uint() == 1 and ", optimistic" or "")
end

local function ordered_set(at, tree)
    local word, number = at(16, 1):uint(), at(17, 3):bitfield(0, 20)
    tree:add(f.link_word, at(16, 1))
    tree:add(f.link_number, at(17, 3), number)
    return string.format("%s %d", link_words[word] or "unknown word", number)
end

local function cf_update(at, tree)
    local words = {}
    for n = 17, 20, 3 do
        local channel, freed = at(n, 3):bitfield(0, 5), at(n, 3):bitfield(5, 15)
        tree:add(f.cf_channel, at(n, 1), channel)
        tree:add(f.cf_freed, at(n, 3), freed)
        words[#words + 1] = string.format("%d freed of VC %d", freed, channel)
    end
    return table.concat(words, ", ")
end

local by_kind = {
    [1] = { queue_pause, 22 }, [2] = { queue_pause, 22 }, [3] = { port_pause, 20 }, [4] = { root_pause, 36 },
    [5] = { feedback, 54 }, [6] = { probe, 26 }, [7] = { credit, 40 },
    [8] = { rts, 34 }, [9] = { schd, 38 }, [10] = { cell, 26 },
    [11] = { stage, 24 }, [12] = { ordered_set, 23 }, [13] = { cf_update, 23 },
    [14] = { stored_bytes, 48 },
}

-- Returns whether the capture has the first `need` bytes of the frame; `buffer` begins at byte 14.
-- If not, adds the reason: the frame is shorter than its fields, or a snap length cut it off.
local function is_there(buffer, need, branch)
    if buffer:reported_len() < need - 14 then
        branch:add_proto_expert_info(short)
    elseif buffer:len() < need - 14 then
        branch:append_text(", cut off by the snap length")
    end
    return buffer:len() >= need - 14
end

function xoff.dissector(buffer, pinfo, tree)
    pinfo.cols.protocol = "xoff"
    local branch = tree:add(xoff, buffer())
    if not is_there(buffer, 15, branch) then
        return
    end
    local kind = buffer(0, 1):uint()
    local known = by_kind[kind]
    if not known then
        branch:add_proto_expert_info(unknown)
        return
    end
    local function at(n, length)
        return buffer(n - 14, length)
    end
    branch:add(f.kind, at(14, 1))
    local need = known[2]
    -- Frames with lists carry the lengths of the lists.
    if buffer:len() >= need - 14 then
        if kind == 6 then
            need = 26 + 4 * at(17, 1):uint()
        elseif kind == 8 then
            need = select(4, rts_lists(at))
        elseif kind == 10 then
            need = 26 + 18 * at(24, 2):uint()
        end
    end
    pinfo.cols.info = kinds[kind]
    if not is_there(buffer, need, branch) then
        return
    end
    local text = known[1](at, branch)
    pinfo.cols.info = kinds[kind] .. ": " .. text
    branch:append_text(", " .. kinds[kind] .. ": " .. text)
end

DissectorTable.get("ethertype"):add(ETHERTYPE, xoff)

-- Roundabout's and ITSY's headers are in the padding of an 802.1Qbb frame. Wireshark's own
-- dissector runs first.

local function roundabout(at, branch)
    local opcode, count = at(34, 1):uint(), at(35, 1):uint()
    branch:add(f.ra_opcode, at(34, 1))
    branch:add(f.ra_count, at(35, 1))
    branch:add(f.ra_priority, at(36, 1))
    branch:add(f.ra_hops, at(37, 1))
    branch:add(f.ra_sid, at(38, 4))
    branch:add(f.ra_qid, at(42, 2))
    local last = f.ra_rand
    if opcode == RA_CREDIT then
        last = f.ra_credit
    elseif opcode == RA_CHECK then
        last = f.ra_state
    end
    branch:add(last, at(44, 4))
    for i = 0, count - 1 do
        branch:add(f.ra_node, at(48 + 4 * i, 4))
    end
    return string.format("Roundabout %s of %d:%d, priority %d", ra_opcodes[opcode],
        at(38, 4):uint(), at(42, 2):uint(), at(36, 1):uint())
end

local function itsy(at, branch)
    branch:add(f.itsy_priority, at(35, 1))
    branch:add(f.itsy_sid, at(36, 4))
    branch:add(f.itsy_qid, at(40, 2))
    branch:add(f.itsy_number, at(42, 2))
    return string.format("ITSY check of %d:%d, priority %d",
        at(36, 4):uint(), at(40, 2):uint(), at(35, 1):uint())
end

local function cc_update(at, branch)
    local words = {}
    for channel = 0, 15 do
        local first = 20 * channel
        local range = at(20 + math.floor(first / 8), 3)
        local consumed = range:bitfield(first % 8, 20)
        branch:add(f.cc_consumed, range, consumed):prepend_text(string.format("VC %d: ", channel))
        if consumed > 0 then
            words[#words + 1] = string.format("%d of VC %d", consumed, channel)
        end
    end
    return "CC_Update: credits consumed: " .. (#words > 0 and table.concat(words, ", ") or "none")
end

local ethertypes = DissectorTable.get("ethertype")
local mac_control = ethertypes:get_dissector(MAC_CONTROL)
local pfc = Proto("xoff_pfc", "xoff header in a PFC frame")

function pfc.dissector(buffer, pinfo, tree)
    if buffer:len() < QUANTA and buffer:len() < buffer:reported_len() then
        -- A field that Wireshark's own dissector misses would end this script.
        pinfo.cols.info = "MAC control, cut off by the snap length"
        return buffer:len()
    end
    local plain = mac_control and mac_control:call(buffer, pinfo, tree) or 0
    if buffer:len() < QUANTA + 2 then
        return plain
    end
    local function at(n, length)
        return buffer(n - 14, length)
    end
    local opcode, kind = buffer(0, 2):uint(), at(34, 1):uint()
    local add, need
    if opcode == EXTENSION and at(16, 3):uint() == UEC then
        add, need = cc_update, 60
    elseif opcode ~= PFC then
        return plain
    elseif ra_opcodes[kind] then
        add, need = roundabout, 48 + 4 * at(35, 1):uint()
    elseif kind == ITSY_CHECK then
        add, need = itsy, 44
    else
        return plain
    end
    local branch = tree:add(xoff, buffer(opcode == PFC and 20 or 2))
    if not is_there(buffer, need, branch) then
        return
    end
    local text = add(at, branch)
    branch:append_text(", " .. text)
    pinfo.cols.info:append(", " .. text)
end

ethertypes:set(MAC_CONTROL, pfc)

-- The UDP length of a trimmed packet is that of the whole packet. Wireshark's own dissector reads what is
-- left, and reports an extended header that is cut.

local IP_END, UDP_END, ROCE = 34, 42, 4791
local udp_length, udp_port = Field.new("udp.length"), Field.new("udp.dstport")
local trimmed = Proto("xoff_trimmed", "trimmed RoCEv2 packet")

function trimmed.dissector(buffer, pinfo, tree)
    local length, port = udp_length(), udp_port()
    local left = buffer:reported_len() - IP_END
    if not length or port.value ~= ROCE or length.value <= left then
        return
    end
    local branch = tree:add(xoff, buffer(math.min(UDP_END, buffer:len())))
    branch:add(f.trim_missing, length.value - left)
    local text = string.format("trimmed: %d of %d B are left", left, length.value)
    branch:append_text(", " .. text)
    pinfo.cols.info:append(", " .. text)
end

register_postdissector(trimmed)

-- PULLs of NDP, ACKs of RUD with a bitmap or credit, its probes and their ACKs, and credit of RCCC are
-- RoCEv2 packets with opcodes that Annex A17 leaves to manufacturers. Wireshark's own dissector reads the
-- headers before the bitmap and the numbers.

local PULL, SACK, PROBE, PROBE_ACK, CREDITED_ACK, BTH_END = 192, 193, 195, 196, 197, 54
local opcode_of = Field.new("infiniband.bth.opcode")
local sack = Proto("xoff_sack", "xoff PULL, bitmap of an ACK, probe, and credit")

function sack.dissector(buffer, pinfo, tree)
    local opcode = opcode_of()
    if not opcode or opcode.value < PULL or opcode.value > CREDITED_ACK then
        return
    end
    local needs = ({[SACK] = 12, [PROBE_ACK] = 12, [CREDITED_ACK] = 16})[opcode.value] or 4
    local branch = tree:add(xoff, buffer(BTH_END))
    if buffer:len() < BTH_END + needs then
        branch:append_text(", cut off by the snap length")
        return
    end
    local word, text = buffer(BTH_END + 1, 3)
    if opcode.value == SACK or opcode.value == CREDITED_ACK then
        branch:add(f.sack_first, word)
        branch:add(f.sack_bits, buffer(BTH_END + 4, 8))
        text = string.format("ACK with a bitmap from PSN %d on", word:uint())
        if opcode.value == CREDITED_ACK then
            local credit = buffer(BTH_END + 13, 3)
            branch:add(f.grant_credit, credit)
            text = text .. string.format(", credit of %d units of 256 B", credit:uint())
        end
    elseif opcode.value == PROBE then
        branch:add(f.sack_probe, word)
        text = string.format("probe %d", word:uint())
    elseif opcode.value == PROBE_ACK then
        branch:add(f.sack_probe, word)
        branch:add(f.sack_bits, buffer(BTH_END + 4, 8))
        text = string.format("ACK of probe %d", word:uint())
    elseif opcode.value == PULL then
        branch:add(f.pull_number, word)
        text = string.format("PULL %d", word:uint())
    else
        branch:add(f.grant_credit, word)
        text = string.format("credit of %d units of 256 B", word:uint())
    end
    branch:append_text(", " .. text)
    pinfo.cols.info:append(", " .. text)
end

register_postdissector(sack)
