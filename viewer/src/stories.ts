// The details of a port, a device or a flow, when the user selects it.

import type { RunDocument } from "./document";
import { chain } from "./causes";
import { h, more } from "./dom";
import * as format from "./format";
import { fct, flowName, gantt, shares } from "./gantt";
import type { Replay } from "./replay";
import type { Chosen, View } from "./view";

export interface Asked extends Chosen {
  /** The port by its name. */
  portName?: string;
}

/** Leads to the story of something. */
export type Link = (asked: Asked, text: string) => HTMLElement;

/** The panel about what is chosen in the view, and what makes links that choose. */
export function storyteller(run: RunDocument, replay: Replay, view: View, suffix = ""): { panel: HTMLElement; link: Link } {
  const body = h("div", { class: "story-body" });
  const back = h("button", { type: "button", hidden: "" }, "Back to the previous place");
  const panel = h("aside", { id: `story${suffix}`, class: "story", tabindex: "-1", "aria-label": "details", "aria-live": "polite" }, body, back);
  let opener: HTMLElement | undefined;
  back.addEventListener("click", () => {
    opener?.scrollIntoView({ block: "center" });
    opener?.focus();
    back.hidden = true;
  });
  const link: Link = ({ portName, ...asked }, text) => {
    const button = h("button", { type: "button", class: "link" }, text);
    button.addEventListener("click", () => {
      const chosen = portName === undefined ? asked : { port: run.fabric.ports.findIndex((one) => one.name === portName) };
      view.choose(chosen);
      // A flow is shown when it begins.
      const flow = chosen.flow === undefined ? undefined : run.flows.rows.find((row) => row.id === chosen.flow);
      if (flow) view.setTime(flow.start_ps);
      // Links within the panel lead on; others are to be found again.
      if (panel.contains(button) || !panel.isConnected) return;
      opener = button;
      back.hidden = false;
      panel.focus({ preventScroll: true });
      panel.scrollIntoView({ block: "nearest" });
    });
    return button;
  };
  const show = () => {
    const { port, node, flow } = view.chosen;
    back.hidden = true;
    body.replaceChildren(
      ...(port !== undefined ? portStory(run, replay, view, port, link)
        : node !== undefined ? nodeStory(run, node, link)
        : flow !== undefined ? flowStory(run, flow, link)
        : []),
    );
  };
  view.on("chosen", show);
  const hint = "Click a port, a device or a table row to show its details here.";
  body.append(h("h3", {}, "The whole run"), h("p", { class: "hint" }, hint));
  if (!run.stories) {
    // The findings instead of the parts of the time.
    const findings = run.notes.filter((note) => note.level === "finding");
    body.append(
      h("p", {}, run.headline),
      ...findings.map((note) => h("div", { class: "note finding" }, h("p", {}, note.text.replaceAll("->", "→")), h("ul", {}, ...note.details.map((detail) => h("li", {}, detail.replaceAll("->", "→")))))),
      h("p", { class: "hint" }, "Where the time of the flows went was not recorded; rerun with measure.explain = true."),
    );
  } else {
    const { text, parts, slowest } = run.stories.overview;
    body.append(prose(text), shares(parts), h("h4", {}, "Slowest flows"), h("ul", { class: "slowest" }, ...slowest.map(([id, why]) => h("li", {}, link({ flow: id }, flowName(run, id)), ` ${why.replaceAll("->", "→")}`))));
  }
  return { panel, link };
}

function pairs(rows: [string, string | Node][]): HTMLElement {
  return h("dl", { class: "pairs" }, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Sentences that were broken for a terminal as paragraphs, and what is aligned as it is. */
function prose(text: string): HTMLElement {
  const place = h("div", {});
  let lines: string[] = [];
  let aligned = false;
  const flush = () => {
    while (lines[0] === "") lines.shift();
    while (lines[lines.length - 1] === "") lines.pop();
    if (lines.length > 0) place.append(aligned ? h("pre", { tabindex: "0" }, lines.join("\n")) : h("p", {}, lines.join(" ").replaceAll("->", "→")));
    lines = [];
  };
  const parts = text.trimEnd().split("\n");
  parts.forEach((line, i) => {
    // Columns are two blanks apart; a line above some is their title.
    const columns = (at: number) => /\S {2,}\S|^ {2}/.test(parts[at] ?? "");
    const next = line === "" ? aligned : columns(i) || (columns(i + 1) && (i === 0 || parts[i - 1] === ""));
    if (next !== aligned) flush();
    aligned = next;
    lines.push(line);
  });
  flush();
  return place;
}

/** Words of `xoff explain`, or how to have them. */
function words(run: RunDocument, story: string | undefined, what: string): HTMLElement {
  if (story) return prose(story);
  const why = run.stories
    ? `This page has no explanation of this ${what}. For an explanation: xoff explain.`
    : "Not recorded; rerun with measure.explain = true to see the parts of the time of each flow.";
  return h("p", { class: "none" }, why);
}

function portStory(run: RunDocument, replay: Replay, view: View, index: number, link: Link): Node[] {
  const { nodes, ports } = run.fabric;
  const port = ports[index];
  if (!port) return [];
  const peer = ports[port.peer];
  const end = run.end_ps;
  const rows: [string, string | Node][] = [
    ["peer port", link({ port: port.peer }, peer?.name ?? "")],
    ["device", link({ node: port.node }, nodes[port.node]?.name ?? "")],
    ["rate", format.rate(port.rate_bps)],
    ["sent", `${format.bytes(port.bytes)}, ${format.percent(end > 0 ? (port.bytes * 8) / ((port.rate_bps * end) / 1e12) : 0)} of its rate`],
    ["longest queue", format.bytes(port.queue_peak)],
    ["pause frames sent", format.count(port.pause_frames)],
  ];
  const paused = run.pauses.ports.find((one) => one.port === index);
  if (paused) {
    rows.push(["paused", `${format.counted(paused.count, "time")}, ${format.time(paused.paused_ps)} in total, ${format.percent(paused.paused_ps / end)} of the run`]);
    const roots = new Map<number, number>();
    replay.shares(index)?.forEach((share, bin) => {
      const root = paused.reasons.find(([from, count]) => from <= bin && bin < from + count)?.[3] ?? -1;
      if (root >= 0) roots.set(root, (roots.get(root) ?? 0) + share);
    });
    const most = [...roots].sort((a, b) => b[1] - a[1]).slice(0, 5);
    if (most.length > 0) rows.push(["mostly because of", h("span", {}, ...most.flatMap(([root], i) => [i > 0 ? ", " : "", link({ port: root }, ports[root]?.name ?? "")]))]);
  } else if (run.pauses.paused_ports === run.pauses.ports.length) {
    rows.push(["paused", "never"]);
  }
  const way = chain(run, replay, index, replay.bin(view.time));
  if (way.length > 1) {
    const links = way.flatMap((one, i) => [i > 0 ? " waits for " : "", link({ port: one }, ports[one]?.name ?? "")]);
    rows.push([`at ${format.time(view.time)}`, h("span", {}, ...links)]);
  }
  const place = run.deadlock?.cycle.findIndex((held) => held.port === index) ?? -1;
  if (run.deadlock && place >= 0) {
    const next = run.deadlock.cycle[(place + 1) % run.deadlock.cycle.length];
    const held = format.bytes(run.deadlock.cycle[place]?.bytes ?? 0);
    rows.push(["deadlock", h("span", {}, `number ${place + 1} of ${run.deadlock.cycle.length}: it holds ${held} and waits for `, link({ port: next?.port ?? 0 }, ports[next?.port ?? 0]?.name ?? ""))]);
  }
  return [h("h3", {}, `Port ${port.name} -> ${nodes[peer?.node ?? -1]?.name ?? ""}`), pairs(rows), words(run, run.stories?.ports[port.name], "port")];
}

function nodeStory(run: RunDocument, index: number, link: Link): Node[] {
  const node = run.fabric.nodes[index];
  if (!node) return [];
  const its = run.fabric.ports.flatMap((port, i) => (port.node === index ? [i] : []));
  const paused = new Map(run.pauses.ports.map((one) => [one.port, one.paused_ps]));
  const item = (i: number) => {
    const port = run.fabric.ports[i];
    const peer = run.fabric.nodes[run.fabric.ports[port?.peer ?? -1]?.node ?? -1]?.name ?? "";
    const ps = paused.get(i);
    return h("li", {}, link({ port: i }, `${port?.name ?? ""} -> ${peer}`), ps ? ` paused ${format.time(ps)}` : "");
  };
  return [
    h("h3", {}, `${node.kind === "host" ? "Host" : node.kind === "relay" ? "Relay" : "Switch"} ${node.name}`),
    pairs([
      ["buffer", format.bytes(node.buffer)],
      ["peak occupancy", `${format.bytes(node.buffer_peak)}${node.buffer > 0 ? `, ${format.percent(node.buffer_peak / node.buffer)}` : ""}`],
    ]),
    h("h4", {}, "Ports"),
    h("ul", { class: "ports" }, ...its.map(item)),
  ];
}

function flowStory(run: RunDocument, id: number, link: Link): Node[] {
  const { nodes } = run.fabric;
  const flow = run.flows.rows.find((row) => row.id === id);
  const title = h("h3", {}, `Flow ${id}`);
  if (!flow) return [title, h("p", {}, "This page does not include this flow; flows.parquet has all flows.")];
  const node = (index: number) => link({ node: index }, nodes[index]?.name ?? "");
  const rows: [string, string | Node][] = [
    ["path", h("span", {}, node(flow.src), " to ", node(flow.dst))],
    ["class", run.flows.classes[flow.class] ?? ""],
    ["size", format.bytes(flow.size)],
    ["start", format.time(flow.start_ps)],
    ["FCT", flow.fct_ps === null ? `${fct(flow)}: ${format.bytes(flow.delivered)} delivered` : fct(flow)],
  ];
  if (flow.slowdown !== null) rows.push(["slowdown", `${format.ratio(flow.slowdown)} (FCT over ideal FCT)`]);
  if (flow.dropped > 0) rows.push(["dropped", format.counted(flow.dropped, "packet")]);
  const story = run.stories?.flows[id];
  if (!story) return [title, pairs(rows), words(run, undefined, "flow")];
  const told = prose(story.text);
  return [title, told, ...(story.steps.length > 0 ? [gantt(run, story, flow.start_ps, link)] : []), more("Facts of the flow", pairs(rows))];
}

/** The scenario, for those who want it. */
export function scenario(value: unknown): HTMLElement {
  return more("The scenario with all defaults", h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
}
