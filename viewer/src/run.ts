// The page of a run.

import { bars, chart, type Bar, type Curve } from "./charts";
import { causes, ring } from "./causes";
import type { Group, RunDocument } from "./document";
import { h, section, table, type Cell } from "./dom";
import { fabric, firstInstant } from "./fabric";
import * as format from "./format";
import { fct } from "./gantt";
import { jobs } from "./jobs";
import { Replay } from "./replay";
import { scenario, storyteller, type Link } from "./stories";
import { controls, lanes, lanesOf, pauseMap, rulesOf } from "./timeline";
import { View } from "./view";

/** Rows of the table of flows that are shown at a time. */
const SHOWN = 50;
/** Figures beside the banner; all are in a table below. */
const FIRST = 5;

export function run(doc: RunDocument): Node[] {
  const replay = new Replay(doc);
  const view = new View(doc.clock.end_ps, firstInstant(doc, replay), doc.clock.end_ps / replay.bins);
  const { panel, link } = storyteller(doc, replay, view);
  const pick = (port: number) => view.choose({ port });
  const { drawing, legend, isWide } = fabric(doc, replay, view);
  const stage = h("div", { class: "stage" }, drawing, controls(doc, replay, view), legend);
  const first = section("fabric", "The fabric over time", h("div", { class: isWide ? "beside wide" : "beside" }, stage, panel));
  first.classList.add("quiet");
  const sections = [
    first,
    ...(doc.deadlock ? [section("deadlock", "The deadlock", ring(doc, link))] : []),
    ...(doc.pauses.roots_known ? [section("causes", "Who pauses whom", causes(doc, replay, view, link))] : []),
    ...(doc.pauses.count > 0 ? [section("pauses", "Pauses", pauseMap(doc, replay, view, pick))] : []),
    ...(doc.jobs.length > 0 ? [section("jobs", "Jobs", ...jobs(doc, link))] : []),
    section("over-time", "Over time", ...lanes(lanesOf(doc), view, rulesOf(doc))),
    section("flows", "Flows", flowTable(doc, link)),
    ...(doc.rankings.length > 0 ? [section("worst", "Rankings", h("div", { class: "rankings" }, ...doc.rankings.map((ranking) => rankingTable(ranking, link))))] : []),
    section("slowdown", "Slowdown and flow completion time (FCT)", h("div", { class: "charts" }, ...slowdowns(doc)), groups(doc)),
    section("buffers", "Buffers", buffers(doc, link)),
    section("what", "All results", figures(doc.figures), verdicts(doc), ...notes(doc)),
    section("about", "About this run", pairs(doc.facts), leftOut(doc), scenario(doc.scenario)),
  ];
  follow(view);
  return [banner(doc), ...sections.slice(0, 1), contents(sections), ...sections.slice(1)];
}

/** The verdict in a sentence, with its colour, and the most important figures. */
export function banner(doc: RunDocument): HTMLElement {
  const words = { loss: "LOSS", deadlock: "DEADLOCK", livelock: "LIVELOCK", partial: "PARTIAL", victims: "VICTIMS", slow: "SLOW", fine: "FINE" };
  const few = doc.figures.slice(0, FIRST).map(([name, value]) => h("span", {}, `${name} `, h("strong", {}, value)));
  return h("div", { class: `banner ${doc.banner.state}`, role: "status" }, h("p", {}, h("strong", { class: "state" }, words[doc.banner.state]), " ", doc.banner.text), h("p", { class: "few" }, ...few));
}

/** Follows the link in the address, and keeps there what is chosen. */
export function follow(view: View) {
  const from = () => {
    const hash = decodeURIComponent(location.hash.slice(1));
    if (hash.includes("=")) view.follow(hash);
  };
  // When the page is drawn.
  queueMicrotask(from);
  window.addEventListener("hashchange", from);
  let waiting = 0;
  const keep = () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => history.replaceState(null, "", `#${view.link()}`), 300);
  };
  view.on("chosen", keep);
  view.on("time", keep);
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
    ...[["slow", "highest slowdown first"], ["unfinished", "unfinished or failed first"], ["id", "by start time"], ["size", "largest first"]].map(([value, text]) => h("option", { value: value ?? "" }, text ?? "")),
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
          fct(row),
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
