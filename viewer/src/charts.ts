// Charts, each with a title, a legend that needs no colour, and its numbers as a table.

import * as Plot from "@observablehq/plot";
import { h, more, s, table, type Cell } from "./dom";

/** The look of the n-th line: a colour of the style sheet and dashes. */
const LOOKS = [
  { colour: "var(--c0)", dash: "none" },
  { colour: "var(--c1)", dash: "7 3" },
  { colour: "var(--c2)", dash: "2 2" },
  { colour: "var(--c3)", dash: "10 3 2 3" },
  { colour: "var(--c4)", dash: "4 4" },
  { colour: "var(--c5)", dash: "12 4" },
  { colour: "var(--c6)", dash: "1 3" },
  { colour: "var(--c7)", dash: "8 2 2 2 2 2" },
] as const;

export interface Curve {
  name: string;
  /** With `low` and `high`, what a bar through the point spans. */
  points: { x: number; y: number; low?: number; high?: number }[];
}

export interface Axis {
  label: string;
  format: (value: number) => string;
  log?: boolean;
  /** How many names there are, where values are places in a list of names. */
  names?: number;
}

export interface Chart {
  title: string;
  about: string;
  x: Axis;
  y: Axis;
  curves: Curve[];
  /** Steps from point to point instead of straight lines. */
  steps?: boolean;
  dots?: boolean;
  /** What the table has; left out, the points of the curves. */
  table?: { heads: string[]; rows: Cell[][] };
}

export const look = (i: number) => LOOKS[i % LOOKS.length] ?? LOOKS[0];

/** The n-th line's points. */
function mark(i: number) {
  return { stroke: look(i).colour, fill: "var(--paper)", strokeWidth: 2, r: 3, symbol: SYMBOLS[i % SYMBOLS.length] ?? "circle" } as const;
}

function swatch(i: number, named: boolean): SVGElement {
  const { colour, dash } = look(i);
  if (named) {
    const identity = { type: "identity", axis: null } as const;
    const picture = Plot.plot({ width: 18, height: 14, margin: 0, x: identity, y: identity, marks: [Plot.dot([0], { x: () => 9, y: () => 7, ...mark(i) })] }) as SVGElement;
    picture.setAttribute("aria-hidden", "true");
    return picture;
  }
  return s(
    "svg",
    { width: 34, height: 8, "aria-hidden": "true" },
    s("line", { x1: 0, x2: 34, y1: 4, y2: 4, style: `stroke:${colour}`, "stroke-width": 2.5, "stroke-dasharray": dash }),
  );
}

/** Round values on a logarithmic axis, few enough to be read. */
function logTicks(values: number[]): number[] {
  const positive = values.filter((value) => value > 0);
  const [low, high] = [Math.min(...positive), Math.max(...positive)];
  if (positive.length === 0) return [];
  const within = (steps: number[]) => {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const step of steps) {
        const tick = step * 10 ** power;
        if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
      }
    }
    return found;
  };
  const all = [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map(within);
  return all.find((ticks) => ticks.length <= 8) ?? thinned(within([1]), 7);
}

/** How an axis is scaled and labelled. */
function axis(axis: Axis, size: "x" | "y", curves: Curve[]): Plot.ScaleOptions {
  const ticks = axis.log ? logTicks(curves.flatMap((curve) => curve.points.map((point) => point[size]))) : size === "x" ? 6 : 5;
  return {
    label: axis.label,
    type: axis.log ? "log" : "linear",
    tickFormat: ((value: number) => short(axis.format(value))) as never,
    ticks: axis.names === undefined ? ticks : Array.from({ length: axis.names }, (_, i) => i),
    grid: true,
    ...(axis.names === undefined ? {} : { domain: [-0.5, axis.names - 0.5] }),
    ...(axis.log ? {} : { zero: size === "y", nice: size === "y" }),
  };
}

/** Without zeros that say nothing: 2.00 as 2. */
function short(text: string): string {
  return /^\d+\.\d*0$/.test(text) ? text.replace(/\.?0+$/, "") : text;
}

/** At most `most` of the values, evenly spread, the last one among them. */
export function thinned<T>(values: T[], most: number): T[] {
  if (values.length <= most) return values;
  return Array.from({ length: most }, (_, i) => values[Math.round(((i + 1) * values.length) / most) - 1] as T);
}

export function figure(title: string, about: string, ...children: Node[]): HTMLElement {
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title), " ", h("span", {}, about)), ...children);
}

/** Lines over a common axis, or points over names. */
export function chart(c: Chart): HTMLElement {
  const curves = c.curves.filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return figure(c.title, c.about, h("p", { class: "none" }, "No data."));
  const marks: Plot.Markish[] = [];
  curves.forEach((curve, i) => {
    const { colour, dash } = look(i);
    // Nothing lies between names: no line, and points beside each other.
    const aside = c.x.names === undefined ? 0 : ((i + 0.5) / curves.length - 0.5) * 0.5;
    const x = (point: Curve["points"][number]) => point.x + aside;
    if (c.x.names === undefined) {
      marks.push(
        Plot.line(curve.points, {
          x,
          y: "y",
          stroke: colour,
          strokeWidth: 2,
          strokeDasharray: dash,
          ...(c.steps ? { curve: "step-after" as const } : {}),
        }),
      );
    }
    const spans = curve.points.filter((point) => point.low !== undefined);
    if (spans.length > 0) marks.push(Plot.ruleX(spans, { x, y1: "low", y2: "high", stroke: colour, strokeWidth: 1.5 }));
    if (c.dots) marks.push(Plot.dot(curve.points, { x, y: "y", ...mark(i) }));
  });
  const picture = Plot.plot({
    width: 620,
    height: 300,
    marginLeft: 76,
    marginBottom: 44,
    marginRight: 24,
    marginTop: 24,
    style: { background: "none", fontSize: "12px" },
    x: { ...axis(c.x, "x", curves), ...(c.x.names === undefined ? {} : { grid: false }) },
    y: axis(c.y, "y", curves),
    marks,
    ariaLabel: `${c.title}. ${c.about}`,
  });
  picture.setAttribute("role", "img");
  const legend = h("ul", { class: "legend" }, ...curves.map((curve, i) => h("li", {}, swatch(i, c.x.names !== undefined), " ", curve.name)));
  const numbers = c.table ?? pointsTable(c, curves);
  return figure(c.title, c.about, legend, picture, more("Data table", table(c.title, numbers.heads, numbers.rows)));
}

const SYMBOLS = ["circle", "square", "triangle", "diamond", "cross", "star", "wye", "asterisk"] as const;

/** The points of the curves as rows; of many, some. */
function pointsTable(c: Chart, curves: Curve[]): { heads: string[]; rows: Cell[][] } {
  const xs = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
  const shared = curves.every((curve) => curve.points.length === xs.length);
  if (!shared && curves.length > 1 && xs.length > 40) {
    const rows = curves.flatMap((curve) =>
      thinned(curve.points, 12).map((point) => [curve.name, c.x.format(point.x), c.y.format(point.y)]),
    );
    return { heads: ["line", c.x.label, c.y.label], rows };
  }
  const at = curves.map((curve) => new Map(curve.points.map((point) => [point.x, point.y])));
  const rows = thinned(xs, 40).map((x) => [
    c.x.format(x),
    ...at.map((values) => {
      const y = values.get(x);
      return y === undefined ? "-" : c.y.format(y);
    }),
  ]);
  return { heads: [c.x.label, ...curves.map((curve) => curve.name)], rows };
}

export interface Bar {
  name: string;
  group: string;
  share: number;
  text: string;
}

/** Shares of a whole as bars, by group. */
export function bars(title: string, about: string, all: Bar[], numbers: { heads: string[]; rows: Cell[][] }): HTMLElement {
  if (all.length === 0) return figure(title, about, h("p", { class: "none" }, "All buffers stayed empty."));
  const groups = [...new Set(all.map((bar) => bar.group))];
  const picture = Plot.plot({
    width: 620,
    height: 60 + all.length * 24 + groups.length * 12,
    marginLeft: 90,
    marginRight: 110,
    marginBottom: 40,
    style: { background: "none", fontSize: "12px" },
    x: { domain: [0, 1], tickFormat: (x: number) => `${Math.round(x * 100)}%`, label: "peak occupancy, share of the size", grid: true },
    y: { label: null, domain: [...new Set(all.map((bar) => bar.name))] },
    fy: { label: null, domain: groups },
    marks: [
      Plot.barX(all, { x: "share", y: "name", fy: "group", fill: "var(--c0)", insetTop: 2, insetBottom: 2 }),
      Plot.text(all, { x: "share", y: "name", fy: "group", text: "text", dx: 4, textAnchor: "start", fill: "currentColor", filter: (bar: Bar) => bar.share < 0.6 }),
      Plot.text(all, { x: "share", y: "name", fy: "group", text: "text", dx: -4, textAnchor: "end", fill: "var(--paper)", filter: (bar: Bar) => bar.share >= 0.6 }),
      Plot.ruleX([0]),
    ],
    ariaLabel: `${title}. ${about}`,
  });
  picture.setAttribute("role", "img");
  return figure(title, about, picture, more("Data table", table(title, numbers.heads, numbers.rows, [1])));
}

/** Steps of the heat scale: colours of the style sheet (viridis), darker for more on a light
 *  page and lighter for more on a dark one, so that lightness alone tells them apart. */
const STEPS = 6;

/** The colour of a share from above 0 to 1. */
export function heat(share: number): string {
  return `var(--h${Math.min(STEPS - 1, Math.floor(share * STEPS))})`;
}

export function heatLegend(): HTMLElement {
  const item = (_: unknown, i: number) => {
    const range = `${Math.round((i * 100) / STEPS)}–${Math.round(((i + 1) * 100) / STEPS)}%`;
    return h("li", {}, h("span", { class: "swatch", style: `background:var(--h${i})` }), ` ${range}`);
  };
  return h("ul", { class: "legend", "aria-label": "share of the time paused" }, ...Array.from({ length: STEPS }, item));
}
