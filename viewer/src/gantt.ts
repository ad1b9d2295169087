// Where the time of a flow went: a bar for each port of its path, and who was ahead.

import type { FlowRow, FlowStory, RunDocument } from "./document";
import { h, more, s, table, type Cell } from "./dom";
import * as format from "./format";
import type { Link } from "./stories";
import { short } from "./timeline";

/** The parts of a flow's time: colour, and what it is. */
export const PARTS: Record<string, [string, string]> = {
  sending: ["var(--c0)", "transmission onto links"],
  propagation: ["var(--c5)", "propagation along links"],
  queueing: ["var(--c2)", "behind other packets, in queues that were not paused"],
  own: ["var(--c3)", "paused because of a congested port on its path"],
  victim: ["var(--alarm)", "paused because of a port off its path"],
  pacing: ["var(--c4)", "limited by its rate or by congestion control"],
  receiver: ["var(--c7)", "the receiver did not accept packets"],
  down: ["var(--c6)", "a link was down"],
  recovery: ["var(--line-strong)", "retransmissions and timeouts"],
};

const LEFT = 112;
const WIDTH = 480;
const ROW = 20;

/** One row for each port on the critical path, one after the other; they add up to the time of the flow. */
export function gantt(run: RunDocument, story: FlowStory, start: number, link: Link): HTMLElement {
  const { ports } = run.fabric;
  const name = (port: number) => ports[port]?.name ?? "";
  const time = (step: FlowStory["steps"][number]) => step.shares.reduce((sum, share) => sum + share[2], 0);
  const whole = story.steps.reduce((sum, step) => sum + time(step), 0);
  const right = (ps: number) => LEFT + ((WIDTH - LEFT - 8) * ps) / Math.max(whole, 1);
  const used = new Set<string>();
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${story.steps.length * ROW + 24}`, role: "img", "aria-label": "Time of the flow along its path" });
  let at = 0;
  story.steps.forEach((step, row) => {
    const y = row * ROW;
    const from = at;
    picture.append(s("line", { class: "rule", x1: LEFT, x2: WIDTH - 8, y1: y + ROW - 1, y2: y + ROW - 1 }));
    const label = `${step.leg === "data" ? "" : `${step.leg} `}${name(step.port)}`;
    picture.append(s("text", { x: LEFT - 6, y: y + 14, "text-anchor": "end" }, short(label, 15), s("title", {}, label)));
    for (const [part, root, ps] of [...step.shares].sort((a, b) => order(a[0]) - order(b[0]))) {
      used.add(part);
      const [colour, meaning] = PARTS[part] ?? ["var(--c6)", part];
      const because = root >= 0 ? `, because of ${name(root)}` : "";
      const bar = s("rect", { x: right(at), y: y + 3, width: Math.max(0.8, right(at + ps) - right(at)), height: ROW - 7, style: `fill:${colour}` });
      bar.append(s("title", {}, `${label}: ${format.time(ps)} ${part}${because} (${meaning})`));
      picture.append(bar);
      at += ps;
    }
    if (right(at) < WIDTH - 60) picture.append(s("text", { class: "value", x: right(at) + 5, y: y + 14 }, format.time(at - from)));
  });
  for (const share of [0, 0.5, 1]) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    picture.append(s("text", { class: "value", x: right(whole * share), y: story.steps.length * ROW + 16, "text-anchor": anchor }, format.time(whole * share)));
  }
  const legend = h(
    "ul",
    { class: "legend" },
    ...Object.keys(PARTS)
      .filter((part) => used.has(part))
      .map((part) => {
        const sum = story.steps.flatMap((step) => step.shares).reduce((all, share) => all + (share[0] === part ? share[2] : 0), 0);
        return h("li", { title: PARTS[part]?.[1] ?? "" }, h("span", { class: "swatch", style: `background:${PARTS[part]?.[0] ?? ""}` }), ` ${part} ${format.percent(sum / Math.max(whole, 1))}`);
      }),
  );
  const rows: Cell[][] = story.steps.flatMap((step) =>
    step.shares.map(([part, root, ps]) => [link({ port: step.port }, `${step.leg} ${name(step.port)}`), part, root >= 0 ? link({ port: root }, name(root)) : "-", format.time(ps)]),
  );
  const ahead: Cell[][] = story.ahead.map(([port, flow, bytes, ps]) => [
    link({ port }, name(port)),
    flow < 0 ? "others and control frames" : link({ flow }, flowName(run, flow)),
    format.bytes(bytes),
    format.time(ps),
  ]);
  return h(
    "figure",
    { class: "gantt" },
    h("figcaption", {}, h("strong", {}, "Time along its path"), " ", h("span", {}, `From its start at ${format.time(start)}. A row for each port; the bars of all rows add up to ${format.time(whole)}.`)),
    legend,
    picture,
    more("Data table", table("Parts of the time", ["port", "part", "congested port", "time"], rows, [1, 2])),
    ...(ahead.length > 0 ? [table("Who was ahead in queues that were not paused", ["queued at", "behind", "bytes", "time"], ahead, [1])] : []),
  );
}

/** Where the time of all flows went: one bar of shares. */
export function shares(parts: [string, number][]): HTMLElement {
  const whole = parts.reduce((sum, [, ps]) => sum + ps, 0);
  const bar = s("svg", { class: "stacked", viewBox: "0 0 600 26", role: "img", preserveAspectRatio: "none", "aria-label": "Parts of the time of all flows" });
  let at = 0;
  for (const [part, ps] of parts) {
    const width = (600 * ps) / Math.max(whole, 1);
    bar.append(s("rect", { x: at, y: 0, width, height: 26, style: `fill:${PARTS[part]?.[0] ?? ""}` }, s("title", {}, `${part}: ${format.time(ps)}`)));
    at += width;
  }
  const items = parts.map(([part, ps]) => h("li", {}, h("span", { class: "swatch", style: `background:${PARTS[part]?.[0] ?? ""}` }), h("span", {}, `${part} ${((ps * 100) / Math.max(whole, 1)).toFixed(1)}% `, h("span", { class: "meaning" }, `${format.time(ps)}, ${PARTS[part]?.[1] ?? ""}`))));
  return h("div", { class: "parts" }, h("h4", {}, "Where the time of all flows went"), bar, h("ul", { class: "legend" }, ...items));
}

const order = (part: string) => Object.keys(PARTS).indexOf(part);

/** The completion time of a flow, or how it is without one. */
export function fct(row: FlowRow): string {
  if (row.fct_ps !== null) return format.time(row.fct_ps);
  return row.failed_ps === null ? "unfinished" : `failed after ${format.time(row.failed_ps)}`;
}

/** `27 H0 -> H4 (mice)`, or its number if the page does not list it. */
export function flowName(run: RunDocument, id: number): string {
  const row = run.flows.rows.find((one) => one.id === id);
  if (!row) return `flow ${id}`;
  const name = (node: number) => run.fabric.nodes[node]?.name ?? "";
  return `${id} ${name(row.src)} -> ${name(row.dst)} (${run.flows.classes[row.class] ?? ""})`;
}
