// Jobs: collectives and training steps, their stragglers, and what each host did over time.

import type { JobPage, JobPath, RunDocument } from "./document";
import { levels } from "./document";
import { h, more, s, table, type Cell } from "./dom";
import * as format from "./format";
import type { Link } from "./stories";
import { short } from "./timeline";

/** What a host does: colour, and what it is. */
const ACTIVITIES: Record<"computing" | "both" | "moving" | "waiting", [string, string, string]> = {
  computing: ["var(--c0)", "computing", "computes, without a message on its path"],
  both: ["var(--c2)", "computing and moving", "computes while a message from it or to it is on its path"],
  moving: ["var(--c1)", "moving", "a message from it or to it is on its path or in a queue, and it does not compute"],
  waiting: ["var(--panel)", "waiting", "waits for other hosts"],
};
const NAMES = ["computing", "both", "moving", "waiting"] as const;

const LEFT = 84;
const RIGHT = 12;
const WIDTH = 760;
const ROW = 20;
/** Iterations that the table has. */
const LISTED = 50;

export function jobs(run: RunDocument, link: Link): HTMLElement[] {
  return run.jobs.map((job) => one(run, job, link));
}

function one(run: RunDocument, job: JobPage, link: Link): HTMLElement {
  const { summary } = job;
  const took = summary.time_ps === null ? "did not finish" : `took ${format.time(summary.time_ps)}`;
  const times = summary.iterations.flatMap((iteration) => (iteration.time_ps === null ? [] : [iteration.time_ps]));
  const figures: [string, string][] = [];
  if (summary.iterations.length === 1 && times.length === 1) {
    figures.push(["step", format.time(times[0] ?? 0)]);
  } else if (times.length > 0) {
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
    figures.push(["steps ended", `${format.count(times.length)} of ${format.count(summary.iterations.length)}`]);
    figures.push(["mean step", format.time(mean)]);
    figures.push(["shortest and longest step", `${format.time(Math.min(...times))}, ${format.time(Math.max(...times))}`]);
  }
  const path = summary.path;
  if (path) {
    figures.push(["critical path: computing", format.time(path.compute_ps)]);
    figures.push([`critical path: moving in ${format.counted(path.flows, "flow")}`, format.time(path.moving_ps)]);
    figures.push(["critical path: waiting in queues", path.waiting_ps === null ? "not recorded" : format.time(path.waiting_ps)]);
  }
  return h(
    "div",
    { class: "job" },
    h("h3", {}, `Job "${summary.class}" ${took}`),
    h("dl", { class: "figures" }, ...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    ...(path && path.ports.length > 0 ? [h("p", {}, "The critical path waited for: ", ...ports(path, link, path.ports.length), ".")] : []),
    picture(run, job, link),
    operations(run, job, link),
    ...(summary.iterations.length > 0 ? [more("Steps", iterations(run, job, link))] : []),
  );
}

/** A host by its name. */
function host(run: RunDocument, name: string, link: Link): HTMLElement {
  return link({ node: run.fabric.nodes.findIndex((node) => node.name === name) }, name);
}

/** Ports with the times that packets waited for them. */
function ports(path: JobPath, link: Link, most: number): Node[] {
  return path.ports.slice(0, most).flatMap((wait, i) => [
    ...(i > 0 ? [document.createTextNode(", ")] : []),
    link({ portName: wait.port }, wait.port),
    document.createTextNode(` (${format.time(wait.waiting_ps)})`),
  ]);
}

function operations(run: RunDocument, job: JobPage, link: Link): HTMLElement {
  const { operations, path } = job.summary;
  if (operations.length === 0) return h("p", { class: "none" }, "The job has no collectives.");
  const rows = operations.map((operation): Cell[] => {
    const late = operation.straggler;
    const first = late?.path.ports[0];
    return [
      operation.name,
      format.count(operation.hosts),
      format.bytes(operation.size),
      operation.finished < operation.count ? `${format.count(operation.finished)} of ${format.count(operation.count)}` : format.count(operation.count),
      operation.mean_ps === null ? "-" : format.time(operation.mean_ps),
      operation.longest_ps === null ? "-" : format.time(operation.longest_ps),
      operation.bus_bandwidth_bps === null ? "-" : format.rate(operation.bus_bandwidth_bps),
      late ? h("span", {}, host(run, late.host, link), ` +${format.time(late.behind_median_ps)}`) : "-",
      late && first ? h("span", {}, ...ports(late.path, link, 1)) : "-",
    ];
  });
  const heads = ["operation", "hosts", "size", "finished", "mean", "longest", "bus bandwidth", "straggler, after the median host", "its packets waited for"];
  const unknown = path?.waiting_ps === null || operations.some((operation) => operation.straggler?.path.waiting_ps === null);
  return h(
    "div",
    {},
    table("Collectives", heads, rows, [7, 8]),
    ...(unknown ? [h("p", { class: "hint" }, "The ports were not recorded. To see them, rerun with --set measure.explain=true.")] : []),
  );
}

function iterations(run: RunDocument, job: JobPage, link: Link): HTMLElement {
  const all = job.summary.iterations;
  const rows = all.slice(0, LISTED).map((iteration, i): Cell[] => [
    `step ${i + 1}`,
    iteration.time_ps === null ? "-" : format.time(iteration.time_ps),
    iteration.end_ps === null ? "unfinished" : format.time(iteration.end_ps),
    iteration.last ? h("span", {}, host(run, iteration.last.host, link), ` +${format.time(iteration.last.behind_median_ps)}`) : "-",
  ]);
  const about = all.length > LISTED ? `Steps, the first ${LISTED} of ${format.count(all.length)}` : "Steps";
  return table(about, ["step", "time", "end", "last host, after the median host"], rows, [3]);
}

/** A row for each host: in each piece of the time, the shares of what it did. */
function picture(run: RunDocument, job: JobPage, link: Link): HTMLElement {
  const { hosts, bins, from_ps: from, until_ps: until } = job;
  const name = (node: number) => run.fabric.nodes[node]?.name ?? "";
  const whole = Math.max(until - from, 1);
  const title = "What each host did";
  const about = `From ${format.time(from)} to ${format.time(until)}, in ${bins} pieces: the height of a colour is its share of the piece.`;
  if (hosts.length === 0) return h("p", { class: "none" }, "The activity of the hosts was not recorded.");
  const height = hosts.length * ROW;
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${height + 34}`, role: "img", "aria-label": `${title}. ${about}` });
  const width = (WIDTH - LEFT - RIGHT) / bins;
  hosts.forEach((host, row) => {
    const [top, room] = [row * ROW + 2, ROW - 4];
    svg.append(s("text", { x: LEFT - 6, y: top + 12, "text-anchor": "end" }, short(name(host.node), 11), s("title", {}, name(host.node))));
    svg.append(s("rect", { x: LEFT, y: top, width: WIDTH - LEFT - RIGHT, height: room, style: "fill:var(--panel)" }));
    const shares = (["computing", "both", "moving"] as const).map((what) => levels(host[what]));
    // One path for each colour, from the bottom of the row.
    let below = new Array<number>(bins).fill(0);
    (["computing", "both", "moving"] as const).forEach((what, i) => {
      const above = below.map((share, bin) => Math.min(1, share + (shares[i]?.[bin] ?? 0)));
      let d = "";
      for (let bin = 0; bin < bins; ) {
        const [low, high] = [below[bin] ?? 0, above[bin] ?? 0];
        let end = bin + 1;
        while (end < bins && below[end] === low && above[end] === high) end += 1;
        if (high > low) {
          const y = (share: number) => (top + room * (1 - share)).toFixed(2);
          const [x0, x1] = [bin, end].map((edge) => (LEFT + edge * width).toFixed(2));
          d += `M${x0} ${y(low)}V${y(high)}H${x1}V${y(low)}Z`;
        }
        bin = end;
      }
      if (d) svg.append(s("path", { d, style: `fill:${ACTIVITIES[what][0]}` }));
      below = above;
    });
    const said = NAMES.map((what) => `${ACTIVITIES[what][1]} ${format.time(host[`${what}_ps`])}`).join(", ");
    svg.append(s("rect", { x: LEFT, y: top, width: WIDTH - LEFT - RIGHT, height: room, fill: "none", "pointer-events": "all" }, s("title", {}, `${name(host.node)}: ${said}`)));
  });
  const at = (ps: number) => LEFT + ((WIDTH - LEFT - RIGHT) * (ps - from)) / whole;
  for (const iteration of job.summary.iterations.length <= 20 ? job.summary.iterations : []) {
    if (iteration.end_ps === null || iteration.end_ps >= until) continue;
    const x = at(iteration.end_ps);
    svg.append(s("line", { class: "step", x1: x, x2: x, y1: 0, y2: height }, s("title", {}, `a step ended at ${format.time(iteration.end_ps)}`)));
  }
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    const x = LEFT + (WIDTH - LEFT - RIGHT) * share;
    svg.append(s("line", { class: "rule", x1: x, x2: x, y1: height, y2: height + 5 }));
    svg.append(s("text", { class: "value", x, y: height + 20, "text-anchor": anchor }, format.time(from + whole * share)));
  }
  const sum = (what: (typeof NAMES)[number]) => hosts.reduce((all, host) => all + host[`${what}_ps`], 0);
  const item = (what: (typeof NAMES)[number]) =>
    h("li", { title: ACTIVITIES[what][2] }, h("span", { class: "swatch", style: `background:${ACTIVITIES[what][0]}` }), ` ${ACTIVITIES[what][1]} ${format.percent(sum(what) / (whole * hosts.length))}`);
  const rows = hosts.map((host): Cell[] => [link({ node: host.node }, name(host.node)), ...NAMES.map((what) => format.time(host[`${what}_ps`]))]);
  const meaning = h("ul", {}, ...NAMES.map((what) => h("li", {}, h("strong", {}, `${ACTIVITIES[what][1]}: `), `the host ${ACTIVITIES[what][2].replace(/^a message/, "has a message")}`)));
  return h(
    "figure",
    { class: "ranks" },
    h("figcaption", {}, h("strong", {}, title), " ", h("span", {}, about)),
    h("ul", { class: "legend" }, ...NAMES.map(item)),
    svg,
    more("Data table", meaning, table(title, ["host", ...NAMES.map((what) => ACTIVITIES[what][1])], rows)),
  );
}
