// The page of a grid: its points beside each other.

import { chart } from "./charts";
import type { GridDocument, GridPoint } from "./document";
import { h, section, table, type Cell } from "./dom";
import * as format from "./format";
import { contents } from "./run";
import { scenario } from "./stories";

/** Metrics that are drawn at first, in this order. */
const DRAWN: [string, string][] = [
  ["slowdown_mean", "Mean slowdown"],
  ["slowdown_p99", "p99 slowdown"],
  ["goodput_bps", "Goodput"],
  ["drops", "Dropped packets"],
  ["pauses", "Pauses"],
  ["paused_ps", "Paused time of all queues"],
  ["victim_ps", "Time that victims waited"],
  ["buffer_peak", "Peak buffer occupancy"],
];
/** Metrics of the table. */
const LISTED: [string, string][] = [
  ["flows", "flows"],
  ["finished", "finished"],
  ["failed", "failed"],
  ["slowdown_mean", "mean slowdown"],
  ["slowdown_p50", "p50 slowdown"],
  ["slowdown_p99", "p99 slowdown"],
  ["goodput_bps", "goodput"],
  ["drops", "dropped"],
  ["pauses", "pauses"],
  ["victim_ps", "victim"],
  ["buffer_peak", "peak buffer"],
];

export function grid(doc: GridDocument): Node[] {
  const sections = [
    section("measures", "Results by parameter", ...measures(doc)),
    ...(doc.axes.length > 0 ? [section("differences", "Differences to a baseline", differences(doc))] : []),
    ...(doc.sizes ? [section("sizes", "Slowdown by flow size", bySize(doc))] : []),
    section("points", "Points of the grid", pointTable(doc)),
    section("runs", "Runs", runTable(doc), ...warnings(doc)),
    section("about", "About this grid", scenario(doc.scenario)),
  ];
  return [contents(sections), ...sections];
}

const metric = (doc: GridDocument, name: string) => doc.metrics.findIndex((one) => one.name === name);

/** From one end to the other, with the unit once where both have it. */
function span([low, high]: [string, string]): string {
  const unit = (text: string) => text.split(" ")[1] ?? "";
  return `${unit(low) === unit(high) ? (low.split(" ")[0] ?? low) : low} to ${high}`;
}

function pointTable(doc: GridDocument): HTMLElement {
  const seeded = doc.seeds.length > 1;
  // Most grids have no failed flow.
  const shown = (name: string, of: GridPoint["metrics"][number] | undefined) => of != null && (name !== "failed" || of.mean > 0);
  const some = LISTED.filter(([name]) => doc.points.some((point) => shown(name, point.metrics[metric(doc, name)])));
  const value = (point: GridPoint, name: string): Cell => {
    const found = point.metrics[metric(doc, name)];
    if (!found) return "-";
    if (!found.ends || (found.ends[0] === found.text && found.ends[1] === found.text)) return found.text;
    return h("span", {}, found.text, h("br"), h("small", {}, span(found.ends)));
  };
  // To the page of the point's first run, if there is one.
  const number = (i: number): Cell => {
    const run = doc.runs.find((one) => one.point === i && one.page);
    return run ? h("a", { href: pageOf(doc, run) }, String(i + 1)) : String(i + 1);
  };
  const rows = doc.points.map((point, i): Cell[] => [
    number(i),
    ...point.values.map((at, axis) => doc.axes[axis]?.values[at] ?? ""),
    String(point.runs),
    point.deadlocks === 0 ? "none" : `${point.deadlocks} of ${point.runs}`,
    ...some.map(([name]) => value(point, name)),
  ]);
  const heads = ["point", ...doc.axes.map((axis) => axis.head), "runs", "deadlock", ...some.map(([, head]) => head)];
  const caption = seeded ? `Mean over ${doc.seeds.length} seeds, with minimum and maximum below` : "Results of each point";
  return table(caption, heads, rows, doc.axes.map((_, i) => i + 1));
}

/** The words of a point, without one of its axes. */
function others(doc: GridDocument, point: GridPoint, without: number): string {
  return point.values.flatMap((v, i) => (i === without ? [] : [`${doc.axes[i]?.head ?? ""} ${doc.axes[i]?.values[v] ?? ""}`])).join(", ");
}

/** Each value of an axis against one of them, where all other values are equal. */
function differences(doc: GridDocument): HTMLElement {
  const metrics = DRAWN.filter(([name]) => doc.points.some((point) => (point.metrics[metric(doc, name)]?.mean ?? 0) !== 0));
  const isNumber = (text: string) => text !== "" && Number.isFinite(Number(text));
  // Named values, such as schemes, rather than numbers.
  const named = doc.axes.findIndex((axis) => axis.values.length > 1 && !axis.values.every(isNumber));
  const first = Math.max(0, named);
  const which = h("select", { id: "baseline" }, ...doc.axes.flatMap((axis, i) => axis.values.map((value, v) => h("option", { value: `${i} ${v}`, ...(i === first && v === 0 ? { selected: "" } : {}) }, `${axis.head} ${value}`))));
  const what = h("select", { id: "difference-of" }, ...metrics.map(([name, title]) => h("option", { value: name, ...(name === "slowdown_p99" ? { selected: "" } : {}) }, title)));
  const place = h("div", {});
  const fill = () => {
    const [axis, base] = which.value.split(" ").map(Number) as [number, number];
    const at = metric(doc, what.value);
    const values = doc.axes[axis]?.values ?? [];
    const rows = new Map<string, (GridPoint | undefined)[]>();
    for (const point of doc.points) {
      const key = others(doc, point, axis) || "all";
      if (!rows.has(key)) rows.set(key, []);
      const row = rows.get(key);
      if (row) row[point.values[axis] ?? 0] = point;
    }
    const cell = (point: GridPoint | undefined, of: GridPoint | undefined): Cell => {
      const [value, its] = [point?.metrics[at], of?.metrics[at]];
      if (!value || !its) return "-";
      if (point === of) return value.text;
      if (its.mean === 0) return `${value.text} (from 0)`;
      const change = value.mean / its.mean - 1;
      const sure = !value.range || !its.range || value.range[0] > its.range[1] || value.range[1] < its.range[0];
      const percent = change >= 1 ? `${format.ratio(value.mean / its.mean)}×` : `${change > 0 ? "+" : ""}${(change * 100).toFixed(1)}%`;
      return h("span", {}, `${value.text}, ${percent}`, sure ? "" : h("small", {}, " (ranges overlap)"));
    };
    const head = doc.axes[axis]?.head ?? "";
    const cells = [...rows].map(([key, points]): Cell[] => [key, ...values.map((_, v) => cell(points[v], points[base]))]);
    place.replaceChildren(table(`Change against ${head} ${values[base] ?? ""}, where all other values are equal`, ["point", ...values.map((value, v) => `${head} ${value}${v === base ? " (baseline)" : ""}`)], cells));
  };
  for (const control of [which, what]) control.addEventListener("change", fill);
  fill();
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Baseline ", which), h("label", {}, "Of ", what)), place);
}

/** The p99 slowdown by flow size: a line for each value of the axes but one, which is fixed. */
function bySize(doc: GridDocument): HTMLElement {
  const { groups, p99 } = doc.sizes ?? { groups: [], p99: [] };
  const LINES = 8;
  const place = h("div", { class: "charts" });
  const words = (point: GridPoint) => others(doc, point, -1) || "all runs";
  const choice = h("select", { id: "size-points" }, h("option", { value: "" }, doc.points.length > LINES ? `the first ${LINES} points` : "all points"), ...doc.axes.flatMap((axis, i) => (axis.values.length > 1 ? axis.values.map((value, v) => h("option", { value: `${i} ${v}` }, `${axis.head} ${value}`)) : [])));
  const draw = () => {
    const [axis, value] = choice.value.split(" ").map(Number);
    const points = doc.points.flatMap((point, i) => (choice.value === "" || point.values[axis ?? 0] === value ? [{ point, i }] : [])).slice(0, LINES);
    const curves = points.map(({ point, i }) => ({
      name: words(point),
      points: (p99[i] ?? []).flatMap((y, x) => (y === null ? [] : [{ x, y }])),
    }));
    place.replaceChildren(
      chart({
        title: "p99 slowdown by flow size",
        about: "Mean over seeds of the p99 of the finished flows of this size.",
        x: { label: "flow size", format: (x) => groups[x] ?? "", names: groups.length },
        y: { label: "p99 slowdown", format: format.ratio, log: true },
        curves,
        dots: true,
      }),
    );
  };
  choice.addEventListener("change", draw);
  draw();
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Points ", choice)), place);
}

/** Charts along one axis, a line for each combination of the others. */
function measures(doc: GridDocument): HTMLElement[] {
  // Along the axis that has most numbers, else the longest.
  const isNumber = (text: string) => text !== "" && Number.isFinite(Number(text));
  const numeric = doc.axes.map((axis) => axis.values.length > 1 && axis.values.every(isNumber));
  let along = numeric.lastIndexOf(true);
  if (along < 0) along = doc.axes.reduce((best, axis, i) => (axis.values.length > (doc.axes[best]?.values.length ?? 0) ? i : best), 0);
  const place = h("div", { class: "charts" });
  const choice = h("select", { id: "along" }, ...doc.axes.map((axis, i) => h("option", { value: String(i), ...(i === along ? { selected: "" } : {}) }, axis.key)));
  const draw = () => place.replaceChildren(...DRAWN.flatMap(([name, title]) => measure(doc, Number(choice.value), name, title)));
  choice.addEventListener("change", draw);
  if (doc.axes.length === 0) return [h("p", { class: "none" }, "Only the seed varies.")];
  draw();
  return [h("div", { class: "controls" }, h("label", {}, "Parameter on the x axis ", choice)), place];
}

function measure(doc: GridDocument, along: number, name: string, title: string): HTMLElement[] {
  const at = metric(doc, name);
  const axis = doc.axes[along];
  const has = doc.points.some((point) => (point.metrics[at]?.mean ?? 0) !== 0);
  if (!axis || !has) return [];
  const numbers = axis.values.map(Number);
  const numeric = numbers.every((value, i) => Number.isFinite(value) && axis.values[i] !== "");
  const x = (point: GridPoint) => (numeric ? (numbers[point.values[along] ?? 0] ?? 0) : (point.values[along] ?? 0));
  const curves = new Map<string, { x: number; y: number; low?: number; high?: number }[]>();
  for (const point of doc.points) {
    const value = point.metrics[at];
    const key = others(doc, point, along) || title;
    if (!curves.has(key)) curves.set(key, []);
    if (value) curves.get(key)?.push({ x: x(point), y: value.mean, ...(value.range ? { low: value.range[0], high: value.range[1] } : {}) });
  }
  const shown = format.inUnit(doc.metrics[at]?.unit ?? "count");
  const about = doc.seeds.length > 1 ? "Mean over seeds; bars from minimum to maximum." : "";
  const sorted = [...curves].map(([key, points]) => ({ name: key, points: points.sort((a, b) => a.x - b.x) }));
  const rows = doc.points.map((point): Cell[] => {
    const value = point.metrics[at];
    return [
      others(doc, point, -1),
      value ? value.text : "-",
      value?.ends ? span(value.ends) : "-",
    ];
  });
  return [
    chart({
      title,
      about,
      x: numeric ? { label: axis.key, format: (v) => String(v) } : { label: axis.key, format: (v) => axis.values[v] ?? "", names: axis.values.length },
      y: { label: title.toLowerCase(), format: shown },
      curves: sorted,
      dots: true,
      table: { heads: ["point", "mean", "minimum to maximum"], rows },
    }),
  ];
}

/** The page of a run, relative to that of the grid. */
function pageOf(doc: GridDocument, run: GridDocument["runs"][number]): string {
  return `${doc.folder ?? "."}/${encodeURIComponent(run.name)}/report.html`;
}

function runTable(doc: GridDocument): HTMLElement {
  const place = doc.folder === null ? "" : `${doc.folder}/`;
  const name = (run: GridDocument["runs"][number]) => (run.page ? h("a", { href: pageOf(doc, run) }, place + run.name) : place + run.name);
  const rows = doc.runs.map((run): Cell[] => [name(run), String(run.point + 1), String(run.seed), run.status, run.error ?? ""]);
  const how = doc.folder === null ? "Directories of the runs were not kept." : doc.runs.some((run) => run.page) ? "Each link leads to the page of a run." : "For pages of all runs, with links: xoff report GRID --pages";
  const more = doc.left_out === 0 ? "" : ` ${format.counted(doc.left_out, "finished run")} not listed: grid.parquet has all.`;
  return table(how + more, [doc.folder === null ? "run" : "directory", "point", "seed", "status", "error"], rows, [3, 4]);
}

/** Warnings that differ only in their numbers are one. */
function warnings(doc: GridDocument): HTMLElement[] {
  const alike = new Map<string, { text: string; texts: number; runs: Set<string> }>();
  for (const { text, runs } of doc.warnings) {
    const key = text.replaceAll(/\d[\d.,]*/g, "#");
    const one = alike.get(key) ?? { text, texts: 0, runs: new Set<string>() };
    one.texts += 1;
    runs.forEach((run) => one.runs.add(run));
    alike.set(key, one);
  }
  return [...alike.values()].map(({ text, texts, runs }) => {
    const names = [...runs];
    const numbers = texts > 1 ? " with other numbers in the other runs" : "";
    return h(
      "div",
      { class: "note warning" },
      h("p", {}, h("strong", {}, "warning: "), text),
      h("p", {}, `In ${format.counted(names.length, "run")}${numbers}: ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}`),
    );
  });
}
