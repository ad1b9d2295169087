// The page of a run.

import { bars, chart, heatMap, type Bar, type Curve } from "./charts";
import { levels, type Group, type RunDocument } from "./document";
import { h, section, table, type Cell } from "./dom";
import { fabric } from "./fabric";
import * as format from "./format";
import { Replay } from "./replay";
import { scenario, storyteller, type Link } from "./stories";

/** Rows of the heat map. */
const HEATED = 40;
/** Rows of the table of flows that are shown at a time. */
const SHOWN = 50;

export function run(doc: RunDocument): Node[] {
  const replay = new Replay(doc);
  const { panel, link, tell } = storyteller(doc, replay);
  const rules = doc.deadlock ? [{ x: doc.deadlock.closed_ps, name: "deadlock" }] : [];
  const sections = [
    section("what", "What happened", figures(doc.figures), verdicts(doc), ...notes(doc)),
    section("fabric", "The fabric over time", h("div", { class: "beside" }, fabric(doc, replay, (what) => tell(what)), panel)),
    ...(doc.pauses.count > 0 ? [section("pauses", "Pauses", pauseMap(doc, replay, rules, link))] : []),
    ...(doc.rankings.length > 0 ? [section("worst", "Rankings", h("div", { class: "rankings" }, ...doc.rankings.map((ranking) => rankingTable(ranking, link))))] : []),
    section("slowdown", "Slowdown and flow completion time (FCT)", h("div", { class: "charts" }, ...slowdowns(doc)), groups(doc)),
    section("over-time", "Over time", h("div", { class: "charts" }, ...overTime(doc, rules))),
    section("buffers", "Buffers", buffers(doc, link)),
    section("flows", "Flows", flowTable(doc, link)),
    section("about", "About this run", pairs(doc.facts), leftOut(doc), scenario(doc.scenario)),
  ];
  return [contents(sections), ...sections];
}

export function contents(sections: HTMLElement[]): HTMLElement {
  const item = (part: HTMLElement) => h("li", {}, h("a", { href: `#${part.id}` }, part.querySelector("h2")?.textContent ?? ""));
  return h("nav", { "aria-label": "contents" }, h("ul", {}, ...sections.map(item)));
}

export function figures(all: [string, string][]): HTMLElement {
  return h("dl", { class: "figures" }, ...all.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function pairs(all: [string, string][]): HTMLElement {
  return h("dl", { class: "pairs" }, ...all.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function verdicts(doc: RunDocument): HTMLElement {
  const words = { held: "held", broken: "BROKEN", "not-promised": "not promised" };
  const rows = doc.verdicts.map((verdict) => [
    verdict.property,
    h("span", { class: `verdict ${verdict.state}` }, words[verdict.state]),
    verdict.text,
  ]);
  return table("Properties of the fabric", ["property", "verdict", "evidence"], rows, [1, 2]);
}

function notes(doc: RunDocument): HTMLElement[] {
  return doc.notes.map((note) =>
    h(
      "div",
      { class: `note ${note.level}` },
      h("p", {}, h("strong", {}, `${note.level}: `), note.text),
      note.details.length > 0 ? h("ul", {}, ...note.details.map((detail) => h("li", {}, detail))) : null,
      note.help ? h("p", {}, `help: ${note.help}`) : null,
    ),
  );
}

function pauseMap(doc: RunDocument, replay: Replay, rules: { x: number; name: string }[], link: Link): HTMLElement {
  const ports = doc.pauses.ports.slice(0, HEATED);
  const name = (port: number) => doc.fabric.ports[port]?.name ?? "";
  const rows = ports.map((one) => ({ name: name(one.port), shares: levels(one.levels), text: format.time(one.paused_ps) }));
  const some = ports.length < doc.pauses.paused_ports ? ` Shown: the ${ports.length} of ${doc.pauses.paused_ports} paused ports that were paused longest.` : "";
  const numbers: Cell[][] = ports.map((one) => [
    link({ port: one.port }, name(one.port)),
    format.time(one.paused_ps),
    format.percent(one.paused_ps / doc.end_ps),
    format.count(one.count),
  ]);
  return heatMap(
    "Paused ports over time",
    `Colour: share of each time slice during which at least one queue of the port was paused.${some}`,
    rows,
    { begin: (bin) => replay.begin(bin), end: doc.clock.end_ps },
    rules,
    { heads: ["port", "paused", "share of the run", "pauses"], rows: numbers },
  );
}

function rankingTable(ranking: RunDocument["rankings"][number], link: Link): HTMLElement {
  const cells = ranking.rows.map((row) => {
    const asked = row.flow !== undefined ? { flow: row.flow } : { portName: row.port ?? "" };
    return row.cells.map((cell, i): Cell => (i === 0 ? link(asked, cell) : cell));
  });
  // Of text are the first column and those that name a port.
  const left = ranking.heads.flatMap((head, i) => (/most|reason/.test(head) ? [i] : []));
  return h("div", { class: "ranking" }, h("h3", {}, ranking.title), table(ranking.about, ranking.heads, cells, left));
}

function slowdowns(doc: RunDocument): HTMLElement[] {
  const { by_size: sizes, cdfs } = doc.flows;
  const middle = (group: { from: number; to: number }) => Math.sqrt(Math.max(group.from, 1) * Math.max(group.to, 1));
  const quantile = (name: string, of: "p50" | "p95" | "p99"): Curve => ({ name, points: sizes.map((group) => ({ x: middle(group), y: group[of] })) });
  const bySize = chart({
    title: "Slowdown by flow size",
    about: "FCT over ideal FCT. Finished flows are sorted by size into groups of equal count.",
    x: { label: "flow size", format: format.bytes, log: true },
    y: { label: "slowdown", format: format.ratio, log: true },
    curves: [quantile("p99", "p99"), quantile("p95", "p95"), quantile("median", "p50")],
    dots: true,
    table: {
      heads: ["sizes", "flows", "mean", "p50", "p95", "p99"],
      rows: sizes.map((group) => [
        group.from === group.to ? format.bytes(group.from) : `${format.bytes(group.from)} to ${format.bytes(group.to)}`,
        format.count(group.flows),
        ...[group.mean, group.p50, group.p95, group.p99].map(format.ratio),
      ]),
    },
  });
  const cdf = (of: "fct_ps" | "slowdown"): Curve[] =>
    cdfs.map((one) => ({
      name: one.finished < one.flows ? `${one.class} (${format.count(one.finished)} of ${format.count(one.flows)} finished)` : one.class,
      points: one[of].map((x, i, all) => ({ x: Math.max(x, 1), y: (i + 1) / all.length })),
    }));
  const common = {
    y: { label: "share of finished flows", format: format.percent },
    steps: true,
  };
  const quantiles = (of: "fct_ps" | "slowdown", shown: (x: number) => string) => ({
    heads: ["class", "flows", "finished", "p1", "p25", "p50", "p75", "p95", "p99", "max"],
    rows: cdfs.map((one) => [
      one.class,
      format.count(one.flows),
      format.count(one.finished),
      ...[1, 25, 50, 75, 95, 99, 100].map((p) => {
        const x = one[of][p - 1];
        return x === undefined ? "-" : shown(x);
      }),
    ]),
  });
  return [
    bySize,
    chart({
      title: "Distribution of the FCT",
      about: "Share of the finished flows of a class with at most this FCT.",
      x: { label: "FCT", format: format.time, log: true },
      ...common,
      curves: cdf("fct_ps"),
      table: quantiles("fct_ps", format.time),
    }),
    chart({
      title: "Distribution of the slowdown",
      about: "Share of the finished flows of a class with at most this slowdown.",
      x: { label: "slowdown", format: format.ratio, log: true },
      ...common,
      curves: cdf("slowdown"),
      table: quantiles("slowdown", format.ratio),
    }),
  ];
}

function groups(doc: RunDocument): HTMLElement {
  const heads = ["flows", "finished", "mean", "p50", "p95", "p99", "p99.9", "goodput", "retransmitted", "dropped"];
  const row = (group: Group): Cell[] => {
    const q = group.slowdown;
    return [
      group.name,
      format.count(group.flows),
      format.count(group.finished),
      ...(q ? [q.mean, q.p50, q.p95, q.p99, q.p999].map(format.ratio) : Array<string>(5).fill("-")),
      format.rate(group.goodput_bps),
      format.count(group.retransmitted),
      format.count(group.dropped),
    ];
  };
  return h(
    "div",
    {},
    table("Slowdown of finished flows, by size", ["size", ...heads], doc.sizes.map(row)),
    table("Slowdown of finished flows, by traffic class", ["traffic", ...heads], doc.classes.map(row)),
  );
}

const QUANTITIES: Record<string, [string, string]> = {
  goodput: ["Goodput", "Payload delivered in order, by traffic class."],
  paused_queues: ["Paused queues", "Number of paused queues in the network."],
  buffered: ["Buffer occupancy", "Bytes in the buffer of each device."],
  throughput: ["Throughput of ports", "All packets that the port sent."],
  queue: ["Egress queues of ports", "Bytes in the egress queues of the port."],
  paused_priorities: ["Paused priorities of ports", "Number of priorities that are paused as a whole; pauses of single queues are not included."],
  rate: ["Rates of flows", "Rate that the congestion control allows."],
  sequence: ["Progress of flows", "Payload that the receiver has received in order."],
  flow_goodput: ["Goodput of flows", "Payload delivered in order."],
  ate_high: ["First hop over port 0", "Own data that hosts sent over port 0."],
  ate_other: ["First hop over port 1", "Own data that hosts sent over port 1."],
  ate_weight: ["Weight of port 0", "Probability that a host sends a flow over port 0 first."],
};

function overTime(doc: RunDocument, rules: { x: number; name: string }[]): HTMLElement[] {
  const { lines, times_ps: times, counts } = doc.series;
  // Quantities of the whole network come first.
  const order = Object.keys(QUANTITIES);
  const quantities = [...new Set(lines.map((line) => line.quantity))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const charts = quantities.map((quantity) => {
    const its = lines.filter((line) => line.quantity === quantity);
    const [title, about] = QUANTITIES[quantity] ?? [quantity, ""];
    const some = its.length < (counts[quantity] ?? 0) ? ` Shown: the ${its.length} of ${counts[quantity] ?? 0} with the highest maximum.` : "";
    return chart({
      title,
      about: about + some,
      x: { label: "time", format: format.time },
      y: { label: title.toLowerCase(), format: format.inUnit(its[0]?.unit ?? "count") },
      rules,
      curves: its.map((line) => ({
        name: line.element,
        points: line.values.flatMap((y, i) => (y === null ? [] : [{ x: times[i] ?? 0, y }])),
      })),
    });
  });
  return charts.length > 0 ? charts : [h("p", { class: "none" }, "There are no samples over time, because measure.interval is not set.")];
}

function buffers(doc: RunDocument, link: Link): HTMLElement {
  const all: Bar[] = [];
  const rows: Cell[][] = [];
  const node = (name: string) => doc.fabric.nodes.findIndex((one) => one.name === name);
  for (const layer of [...doc.fabric.layers].reverse()) {
    for (const [what, mark] of [["buffer", layer.buffer], ["headroom", layer.headroom], ["queue", layer.queue]] as const) {
      if (!mark) continue;
      const share = mark.of ? mark.bytes / mark.of : null;
      const asked = what === "buffer" ? { node: node(mark.place) } : { portName: mark.place };
      rows.push([
        `${layer.name} (${layer.nodes})`,
        what,
        link(asked, mark.place),
        format.bytes(mark.bytes),
        mark.of ? format.bytes(mark.of) : "-",
        share === null ? "-" : format.percent(share),
      ]);
      if (share !== null) all.push({ name: what, group: layer.name, share, text: `${format.percent(share)} of ${format.bytes(mark.of ?? 0)}, ${mark.place}` });
    }
  }
  return bars("Peak occupancy by layer", "For each layer: the fullest buffer of a device, and the fullest headroom of an ingress queue.", all, {
    heads: ["layer (devices)", "memory", "place", "peak", "size", "share"],
    rows,
  });
}

function flowTable(doc: RunDocument, link: Link): HTMLElement {
  const { rows, classes } = doc.flows;
  const name = (node: number) => doc.fabric.nodes[node]?.name ?? "";
  const said = (row: (typeof rows)[number]) => `${row.id} ${name(row.src)} -> ${name(row.dst)} (${classes[row.class] ?? ""})`;
  const filter = h("input", { id: "flow-filter", type: "search", placeholder: "id, host or class" });
  const order = h(
    "select",
    { id: "flow-order" },
    ...[["slow", "highest slowdown first"], ["unfinished", "unfinished first"], ["id", "by start time"], ["size", "largest first"]].map(([value, text]) => h("option", { value: value ?? "" }, text ?? "")),
  );
  const place = h("div", {});
  const told = h("p", { role: "status" });
  const fill = () => {
    const wanted = filter.value.trim().toLowerCase();
    const one = /^\d+$/.test(wanted) ? Number(wanted) : undefined;
    const fits = (row: (typeof rows)[number]) => (one !== undefined ? row.id === one : said(row).toLowerCase().includes(wanted));
    const slow = (row: (typeof rows)[number]) => row.slowdown ?? -1;
    const sorts: Record<string, (a: (typeof rows)[number], b: (typeof rows)[number]) => number> = {
      slow: (a, b) => slow(b) - slow(a),
      unfinished: (a, b) => Number(a.fct_ps !== null) - Number(b.fct_ps !== null) || a.start_ps - b.start_ps,
      id: (a, b) => a.id - b.id,
      size: (a, b) => b.size - a.size,
    };
    const found = rows.filter(fits).sort(sorts[order.value]);
    told.textContent = `${format.counted(found.length, "flow")} of ${format.count(rows.length)} listed${found.length > SHOWN ? `, the first ${SHOWN} shown` : ""}.`;
    place.replaceChildren(
      table(
        "Flows",
        ["flow", "size", "start", "FCT", "slowdown", "dropped"],
        found.slice(0, SHOWN).map((row) => [
          link({ flow: row.id }, said(row)),
          format.bytes(row.size),
          format.time(row.start_ps),
          row.fct_ps === null ? "unfinished" : format.time(row.fct_ps),
          row.slowdown === null ? "-" : format.ratio(row.slowdown),
          format.count(row.dropped),
        ]),
      ),
    );
  };
  filter.addEventListener("input", fill);
  order.addEventListener("change", fill);
  fill();
  const controls = h("div", { class: "controls" }, h("label", {}, "Filter ", filter), h("label", {}, "Sort ", order));
  return h("div", {}, controls, told, place);
}

function leftOut(doc: RunDocument): HTMLElement {
  if (doc.left_out.length === 0) return h("p", {}, "This page shows all data.");
  return h("div", {}, h("h3", {}, "Not shown on this page"), h("ul", {}, ...doc.left_out.map((text) => h("li", {}, text))));
}
