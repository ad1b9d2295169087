// What all parts of a page share: the instant, the window of the time axis, and what is chosen.

import * as format from "./format";

export interface Chosen {
  flow?: number;
  port?: number;
  node?: number;
}

type Part = "time" | "window" | "chosen" | "root";

/** Picoseconds of a unit, as links write an instant. */
const UNITS: Record<string, number> = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 };

export class View {
  /** In picoseconds, as is the window. */
  time: number;
  window: [number, number];
  chosen: Chosen = {};
  /** Only pauses that this congested port caused; -1 for all. */
  root = -1;
  private readonly listeners: [Part, () => void][] = [];

  /** An axis from 0 to `end`, which is not left; the window has at least `least`. */
  constructor(readonly end: number, time: number, private readonly least: number) {
    this.time = time;
    this.window = [0, end];
  }

  on(part: Part, listener: () => void) {
    this.listeners.push([part, listener]);
  }

  private tell(part: Part) {
    for (const [of, listener] of this.listeners) if (of === part) listener();
  }

  setTime(ps: number) {
    const time = Math.max(0, Math.min(this.end, ps));
    if (time === this.time) return;
    this.time = time;
    // An instant outside the window moves it.
    const [from, to] = this.window;
    if (time < from || time > to) this.setWindow(time - (to - from) / 2, time + (to - from) / 2);
    this.tell("time");
  }

  setWindow(from: number, to: number) {
    const length = Math.max(this.least, Math.min(this.end, to - from));
    const start = Math.max(0, Math.min(this.end - length, from));
    if (start === this.window[0] && start + length === this.window[1]) return;
    this.window = [start, start + length];
    this.tell("window");
  }

  /** Makes the window `factor` times as long around `middle`. */
  zoom(factor: number, middle = this.time) {
    const [from, to] = this.window;
    this.setWindow(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  choose(chosen: Chosen) {
    this.chosen = chosen;
    this.tell("chosen");
  }

  setRoot(root: number) {
    this.root = root;
    this.tell("root");
  }

  /** The link to the view: `flow=396&t=415us`. */
  link(): string {
    const chosen = Object.entries(this.chosen).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${String(value)}`]));
    return [...chosen, `t=${format.time(this.time).replace(" ", "")}`].join("&");
  }

  /** Follows such a link. */
  follow(link: string) {
    const parts = new Map(link.split("&").map((part) => part.split("=") as [string, string]));
    const chosen: Chosen = {};
    for (const key of ["flow", "port", "node"] as const) {
      const value = Number(parts.get(key));
      if (parts.has(key) && Number.isInteger(value) && value >= 0) chosen[key] = value;
    }
    if (Object.keys(chosen).length > 0) this.choose(chosen);
    const [, number, unit] = /^([\d.]+)(ps|ns|us|ms|s)$/.exec(parts.get("t") ?? "") ?? [];
    if (number && unit) this.setTime(Number(number) * (UNITS[unit] ?? 0));
  }
}
