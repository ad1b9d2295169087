// The page of two runs beside each other, on one time axis.

import { chart, type Curve } from "./charts";
import type { PairDocument, RunDocument } from "./document";
import { h, section, table, type Cell } from "./dom";
import { fabric, firstInstant } from "./fabric";
import * as format from "./format";
import { fct, flowName } from "./gantt";
import { jobs } from "./jobs";
import { Replay } from "./replay";
import { banner, contents, follow, pairs } from "./run";
import { storyteller, type Link } from "./stories";
import { controls, lanes, lanesOf, pauseMap, rulesOf, type Lane } from "./timeline";
import { View } from "./view";

/** Rows of the table of flows. */
const SHOWN = 50;

export function pair(doc: PairDocument): Node[] {
  const { runs } = doc;
  const names = labels(runs);
  const replays = runs.map((run) => new Replay(run)) as [Replay, Replay];
  const end = Math.max(...runs.map((run) => run.clock.end_ps));
  const view = new View(end, firstInstant(runs[0], replays[0]), end / replays[0].bins);
  // The one with the longer axis has the slider.
  const longer = runs[0].clock.end_ps >= runs[1].clock.end_ps ? 0 : 1;
  // What is chosen in one fabric is chosen in the other, so the two must be one network.
  const network = (run: RunDocument) => run.fabric.ports.map((port) => port.name).join(" ");
  const same = network(runs[0]) === network(runs[1]);
  const sides = runs.map((run, i) => {
    const replay = replays[i] as Replay;
    const suffix = i === 0 ? "" : "-b";
    const { panel, link } = storyteller(run, replay, view, suffix);
    const { drawing, legend } = fabric(run, replay, view, suffix);
    return { drawing, legend, panel, link, heading: h("h3", {}, names[i] ?? "") };
  });
  const link = sides[0]?.link as Link;
  const both = (of: (side: (typeof sides)[number], i: number) => HTMLElement[]) => h("div", { class: "two" }, ...sides.map((side, i) => h("div", {}, ...of(side, i))));
  const differ = same ? "" : h("p", { class: "note warning" }, "The two runs have different networks: what is chosen is chosen by its number in each, and need not be the same device.");
  const first = section("fabric", "The fabrics over time", changes(runs, names), differ, both((side, i) => [side.heading, banner(runs[i] as RunDocument)]), both((side) => [side.drawing]), controls(runs[longer] as RunDocument, replays[longer] as Replay, view), both((side) => [side.legend]));
  first.classList.add("quiet");
  const sections = [
    first,
    section("details", "What is chosen, in both runs", both((side) => [side.panel])),
    ...(runs.some((run) => run.jobs.length > 0) ? [section("jobs", "Jobs", both((side, i) => [h("h3", {}, names[i] ?? ""), ...jobs(runs[i] as RunDocument, side.link)]))] : []),
    section("over-time", "Over time", ...lanes(together(runs, names), view, runs.flatMap(rulesOf))),
    ...(runs.some((run) => run.pauses.count > 0) ? [section("pauses", "Pauses", ...runs.map((run, i) => (run.pauses.count > 0 ? h("div", {}, h("h3", {}, names[i] ?? ""), pauseMap(run, replays[i] as Replay, view, (port) => view.choose({ port }))) : h("p", {}, `${names[i] ?? ""} has no pauses.`))))] : []),
    section("flows", "Flows", distributions(runs, names), flows(runs, names, link)),
    section("what", "All results", results(runs, names)),
    section("about", "About these runs", both((_, i) => [h("h3", {}, names[i] ?? ""), pairs(runs[i]?.facts ?? [])])),
  ];
  follow(view);
  const heading = document.querySelector("h1");
  if (heading) heading.textContent = names.join(" beside ");
  return [...sections.slice(0, 1), contents(sections), ...sections.slice(1)];
}

/** Names that tell the two apart: with the schemes, or numbers, if they are equal. */
function labels(runs: [RunDocument, RunDocument]): [string, string] {
  const fact = (run: RunDocument, name: string) => run.facts.find(([key]) => key === name)?.[1] ?? "";
  const kinds: ((run: RunDocument, i: number) => string)[] = [(run) => run.name, (run) => `${run.name}, ${fact(run, "flow control")}`, (run, i) => `${run.name} (${i + 1})`];
  for (const kind of kinds) {
    const found = runs.map(kind) as [string, string];
    if (found[0] !== found[1]) return found;
  }
  return ["first run", "second run"];
}

/** The lines of both runs in one lane for each quantity that both have. */
function together(runs: [RunDocument, RunDocument], names: [string, string]): Lane[] {
  const [a, b] = runs.map(lanesOf) as [Lane[], Lane[]];
  return a.flatMap((lane) => {
    const other = b.find((one) => one.title === lane.title);
    if (!other) return [];
    const named = (one: Lane, i: 0 | 1) => one.curves.map((curve) => ({ ...curve, name: `${names[i]}: ${curve.name}` }));
    return [{ ...lane, curves: [...named(lane, 0), ...named(other, 1)] }];
  });
}

function distributions(runs: [RunDocument, RunDocument], names: [string, string]): HTMLElement {
  const curves = runs.flatMap((run, i) =>
    run.flows.cdfs.map((one): Curve => ({ name: `${names[i] ?? ""}: ${one.class}`, points: one.slowdown.map((x, k, all) => ({ x: Math.max(x, 1), y: (k + 1) / all.length })) })),
  );
  return h("div", { class: "charts" }, chart({ title: "Distribution of the slowdown", about: "Share of the finished flows of a class with at most this slowdown.", x: { label: "slowdown", format: format.ratio, log: true }, y: { label: "share of finished flows", format: format.percent }, steps: true, curves }));
}

/** Flows that both pages list, the largest change first. */
function flows(runs: [RunDocument, RunDocument], names: [string, string], link: Link): HTMLElement {
  const [a, b] = runs;
  const other = new Map(b.flows.rows.map((row) => [row.id, row]));
  const host = (run: RunDocument, node: number) => run.fabric.nodes[node]?.name;
  const common = a.flows.rows.flatMap((row) => {
    const its = other.get(row.id);
    const same = its && its.size === row.size && its.start_ps === row.start_ps && host(a, row.src) === host(b, its.src) && host(a, row.dst) === host(b, its.dst);
    return same ? [{ row, its, change: Math.log((its.fct_ps ?? Infinity) / (row.fct_ps ?? Infinity)) }] : [];
  });
  if (common.length === 0) return h("p", { class: "none" }, "The two runs have no flow in common: their arrivals differ.");
  const change = (one: (typeof common)[number]) => (Number.isNaN(one.change) ? 0 : Math.abs(one.change));
  common.sort((x, y) => change(y) - change(x));
  const rows = common.slice(0, SHOWN).map(({ row, its }): Cell[] => [
    link({ flow: row.id }, flowName(a, row.id)),
    format.bytes(row.size),
    format.time(row.start_ps),
    fct(row),
    fct(its),
    row.fct_ps !== null && its.fct_ps !== null ? `${format.ratio(its.fct_ps / row.fct_ps)}×` : "-",
  ]);
  return table(`Flows that both pages list (${format.count(common.length)}), the largest change first`, ["flow", "size", "start", `FCT, ${names[0]}`, `FCT, ${names[1]}`, "second to first"], rows);
}

/** What changes from the first run to the second, in a line. */
function changes(runs: [RunDocument, RunDocument], names: [string, string]): HTMLElement {
  const [first, second] = runs.map((run) => new Map(run.figures)) as [Map<string, string>, Map<string, string>];
  const shown = ["slowdown, mean", "slowdown, p99", "victims", "flows finished", "flows failed", "goodput"].flatMap((name) => {
    const [a, b] = [first.get(name), second.get(name)];
    if (a === undefined || b === undefined) return [];
    return [h("span", {}, `${name}: `, h("strong", {}, a === b ? `${a} in both` : `${a} → ${b}`))];
  });
  return h("div", { class: "banner" }, h("p", {}, `From ${names[0]} to ${names[1]}:`), h("p", { class: "few" }, ...shown));
}

function results(runs: [RunDocument, RunDocument], names: [string, string]): HTMLElement {
  const heads = [...new Set(runs.flatMap((run) => run.figures.map(([name]) => name)))];
  const value = (run: RunDocument, head: string) => run.figures.find(([name]) => name === head)?.[1] ?? "-";
  return table("Results of both runs", ["result", ...names], heads.map((head) => [head, ...runs.map((run) => value(run, head))]));
}
