// Everything over time, on one axis: controls, and lanes that share cursor, window and instant.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { heat, look, thinned, type Curve } from "./charts";
import { levels, type RunDocument } from "./document";
import { h, more, table, type Cell } from "./dom";
import * as format from "./format";
import type { Replay } from "./replay";
import type { View } from "./view";

/** Seconds that the whole run takes at speed 1. */
const SECONDS = 12;
/** Rows of the map of pauses. */
const MAPPED = 40;
/** Part of the window that one turn of the wheel leaves out. */
const WHEEL = 0.8;
/** Room for the names and values on the left, in pixels: one for all lanes, so that instants are above each other. */
const MARGIN = 104;

export interface Event {
  at: number;
  text: string;
}

/** The events of a run that the key `.` goes through. */
export function events(run: RunDocument, replay: Replay): Event[] {
  const all: Event[] = [];
  let paused = false;
  for (let bin = 0; bin < replay.bins; bin += 1) {
    const now = replay.at(bin).size > 0;
    if (now !== paused) all.push({ at: replay.begin(bin), text: now ? "pauses begin" : "pauses end" });
    paused = now;
  }
  if (run.banner.at_ps !== null) all.push({ at: Math.min(run.banner.at_ps, run.clock.end_ps), text: run.banner.text });
  if (run.deadlock?.ended_ps != null) all.push({ at: run.deadlock.ended_ps, text: "the deadlock ended" });
  return all.sort((a, b) => a.at - b.at);
}

/** The controls of the instant: play, step, zoom, and keys. */
export function controls(run: RunDocument, replay: Replay, view: View): HTMLElement {
  const slider = h("input", { id: "time", type: "range", min: "0", max: String(replay.bins - 1), step: "1", "aria-label": "time" });
  const clock = h("output", { id: "clock", for: "time" });
  const play = h("button", { id: "play", type: "button", "aria-pressed": "false" }, "Play");
  const speed = h("select", { id: "speed", "aria-label": "speed" }, ...["0.25", "0.5", "1", "2", "4"].map((x) => h("option", { value: x, ...(x === "1" ? { selected: "" } : {}) }, `${x}×`)));
  const list = events(run, replay);
  const status = document.createElement("span");
  status.className = "event";

  /** The instant of the event that is told. */
  let eventAt = -1;
  const show = () => {
    const bin = replay.bin(view.time);
    slider.value = String(bin);
    clock.value = format.time(view.time);
    if (view.time !== eventAt) status.textContent = "";
    slider.setAttribute("aria-valuetext", format.time(view.time));
  };
  view.on("time", show);
  show();

  let frame: number | undefined;
  const stop = () => {
    if (frame !== undefined) cancelAnimationFrame(frame);
    frame = undefined;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
    // During playback a screen reader cannot read every picture.
    for (const now of document.querySelectorAll("[role=status][id^=now]")) now.setAttribute("aria-live", "polite");
  };
  const start = () => {
    if (view.time >= replay.begin(replay.bins - 1)) view.setTime(0);
    play.textContent = "Stop";
    play.setAttribute("aria-pressed", "true");
    for (const now of document.querySelectorAll("[role=status][id^=now]")) now.setAttribute("aria-live", "off");
    let last = performance.now();
    const step = (now: number) => {
      const by = ((now - last) / 1000 / SECONDS) * Number(speed.value) * view.end;
      last = now;
      const end = replay.begin(replay.bins - 1);
      view.setTime(Math.min(end, view.time + by));
      if (view.time >= end) return stop();
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  };
  const toggle = () => (frame === undefined ? start() : stop());
  const go = (ps: number) => {
    stop();
    view.setTime(ps);
  };
  const step = (by: number) => go(replay.begin(Math.max(0, Math.min(replay.bins - 1, replay.bin(view.time) + by))));
  const event = (by: 1 | -1) => {
    const found = by === 1 ? list.find((one) => one.at > view.time) : list.filter((one) => one.at < view.time).pop();
    if (!found) return;
    eventAt = found.at;
    go(found.at);
    status.textContent = found.text;
  };
  play.addEventListener("click", toggle);
  slider.addEventListener("input", () => go(replay.begin(Number(slider.value))));

  const button = (label: string, act: () => void, title = "") => {
    const it = h("button", { type: "button", ...(title ? { title, "aria-label": title } : {}) }, label);
    it.addEventListener("click", act);
    return it;
  };
  const jumps = [button("Start", () => go(0))];
  if (run.pauses.count > 0) jumps.push(button("First pause", () => go(replay.begin(replay.first()))));
  if (run.deadlock) jumps.push(button("Deadlock", () => go(run.deadlock?.closed_ps ?? 0)));
  jumps.push(button("End", () => go(replay.begin(replay.bins - 1))));
  if (list.length > 0) jumps.push(button("‹ event", () => event(-1), "Previous event (key ,)"), button("event ›", () => event(1), "Next event (key .)"));
  const zooms = [
    button("−", () => view.zoom(2), "Zoom out (key -)"),
    button("+", () => view.zoom(0.5), "Zoom in (key +)"),
    button("All", () => view.setWindow(0, view.end), "Show all of the time axis (key 0)"),
  ];

  // Keys, wherever the reader is, except in fields and lists of their own.
  const keys: Record<string, () => void> = {
    " ": toggle,
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    ".": () => event(1),
    ",": () => event(-1),
    "+": () => view.zoom(0.5),
    "=": () => view.zoom(0.5),
    "-": () => view.zoom(2),
    "0": () => view.setWindow(0, view.end),
  };
  document.addEventListener("keydown", (pressed) => {
    const own = "input, select, textarea, button, summary, a, [role=listbox], [role=region]";
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || (pressed.target as Element).closest?.(own)) return;
    const act = keys[pressed.key];
    if (!act) return;
    pressed.preventDefault();
    act();
  });

  return h(
    "div",
    { class: "player" },
    h("div", { class: "controls" }, play, speed, slider, clock),
    h("div", { class: "controls" }, ...jumps, ...zooms, status),
    h("p", { class: "hint" }, `Keys: space plays, arrows step${list.length > 0 ? ", . and , go to the next and previous event" : ""}, + and - zoom, 0 shows all.`),
  );
}

/** A picture over time. */
export interface Lane {
  title: string;
  about: string;
  unit: (value: number) => string;
  curves: Curve[];
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

export function lanesOf(run: RunDocument): Lane[] {
  const { lines, times_ps: times, counts } = run.series;
  // Quantities of the whole network come first.
  const order = Object.keys(QUANTITIES);
  const quantities = [...new Set(lines.map((line) => line.quantity))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return quantities.map((quantity) => {
    const its = lines.filter((line) => line.quantity === quantity);
    const [title, about] = QUANTITIES[quantity] ?? [quantity, ""];
    const some = its.length < (counts[quantity] ?? 0) ? ` Shown: the ${its.length} of ${counts[quantity] ?? 0} with the highest maximum.` : "";
    return {
      title,
      about: about + some,
      unit: format.inUnit(its[0]?.unit ?? "count"),
      curves: its.map((line) => ({
        name: line.element,
        points: line.values.flatMap((y, i) => (y === null ? [] : [{ x: times[i] ?? 0, y }])),
      })),
    };
  });
}

/** The colour of a variable of the style sheet, as a canvas needs it. */
function colour(variable: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(variable)?.[1];
  return name ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : variable;
}

/** The options that all lanes share: the axis of time, its cursor, and what the pointer does to it. */
function shared(view: View, rules: Event[], width: number, height: number): uPlot.Options {
  const mark = (u: uPlot, at: number, stroke: string, dash: number[]) => {
    const x = u.valToPos(at, "x", true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    u.ctx.strokeStyle = stroke;
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  };
  return {
    width,
    height,
    series: [],
    padding: [8, 30, 0, 0],
    scales: { x: { time: false, range: () => view.window } },
    cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false },
    axes: [
      { stroke: () => colour("var(--soft)"), grid: { stroke: () => colour("var(--line)"), width: 1 }, ticks: { stroke: () => colour("var(--line)") }, values: (_, at) => at.map(format.time), space: 90, size: 30, font: "12px system-ui, sans-serif" },
      { stroke: () => colour("var(--soft)"), grid: { stroke: () => colour("var(--line)"), width: 1 }, ticks: { show: false }, size: MARGIN, space: 26, font: "12px system-ui, sans-serif" },
    ],
    hooks: {
      draw: [
        (u) => {
          for (const rule of rules) mark(u, rule.at, colour("var(--alarm)"), [2, 3]);
          mark(u, view.time, colour("var(--ink)"), []);
        },
      ],
      setSelect: [
        (u) => {
          const { left, width: wide } = u.select;
          // The window was moved instead.
          if (u.over.dataset.moved === "yes") return u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (wide > 4) view.setWindow(u.posToVal(left, "x"), u.posToVal(left + wide, "x"));
        },
      ],
      ready: [
        (u) => {
          let down = 0;
          let armed = false;
          let from: [number, number] | undefined;
          const over = u.over;
          over.addEventListener("pointerdown", (event) => {
            down = event.clientX;
            armed = true;
            over.dataset.moved = event.shiftKey || event.button === 1 ? "yes" : "no";
            // With Shift, or the middle button, the axis is moved.
            if (event.shiftKey || event.button === 1) {
              from = view.window;
              over.setPointerCapture(event.pointerId);
              event.stopPropagation();
            }
          });
          over.addEventListener("pointermove", (event) => {
            if (!from) return;
            const by = ((down - event.clientX) / over.clientWidth) * (from[1] - from[0]);
            view.setWindow(from[0] + by, from[1] + by);
          });
          over.addEventListener("pointerup", () => (from = undefined));
          over.addEventListener("pointerleave", () => (armed = false));
          over.addEventListener("click", (event) => {
            if (Math.abs(event.clientX - down) < 4) view.setTime(u.posToVal(event.offsetX, "x"));
          });
          over.addEventListener("dblclick", () => view.setWindow(0, view.end));
          over.addEventListener(
            "wheel",
            (event) => {
              // The wheel scrolls the page until the reader has clicked here, or holds Ctrl.
              if (!armed && !event.ctrlKey) return;
              event.preventDefault();
              const [start, end] = view.window;
              if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
                const by = (Math.sign(event.deltaX || event.deltaY) * (end - start)) / 10;
                view.setWindow(start + by, end + by);
              } else {
                view.zoom(event.deltaY < 0 ? WHEEL : 1 / WHEEL, u.posToVal(event.offsetX, "x"));
              }
            },
            { passive: false },
          );
        },
      ],
    },
  };
}

/** Draws a lane in `place`, as wide as that is, and again whenever something about it changes. */
function mount(place: HTMLElement, view: View, make: (width: number) => uPlot) {
  let plot: uPlot | undefined;
  const draw = () => {
    const width = place.clientWidth;
    if (width === 0) return;
    plot?.destroy();
    plot = make(width);
    tell();
  };
  // Values at the instant, until the pointer asks for others.
  const tell = () => {
    if (plot && plot.cursor.left !== undefined && plot.cursor.left < 0) plot.setLegend({ idx: plot.valToIdx(view.time) });
  };
  new ResizeObserver(() => {
    if (plot && Math.abs(plot.width - place.clientWidth) < 2) return;
    draw();
  }).observe(place);
  view.on("time", () => {
    plot?.redraw(false, false);
    tell();
  });
  place.addEventListener("pointerleave", () => setTimeout(tell));
  view.on("window", () => plot?.setScale("x", { min: view.window[0], max: view.window[1] }));
  // Other colours: dark, light, or paper.
  for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", draw);
  return draw;
}

/** The lanes of lines, with a choice of linear or logarithmic values, and instants that are marked. */
export function lanes(all: Lane[], view: View, rules: Event[]): HTMLElement[] {
  if (all.length === 0) return [h("p", { class: "none" }, "There are no samples over time, because measure.interval is not set.")];
  const scale = h("select", { id: "scale" }, h("option", { value: "linear" }, "linear"), h("option", { value: "log" }, "logarithmic"));
  const redraws: (() => void)[] = [];
  const figures = all.map((lane) => {
    const place = h("div", { class: "lane", role: "img", "aria-label": `${lane.title}. ${lane.about}` });
    redraws.push(mount(place, view, (width) => lines(lane, view, rules, width, scale.value === "log", place)));
    const heads = ["time", ...lane.curves.map((curve) => curve.name)];
    const xs = [...new Set(lane.curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
    const at = lane.curves.map((curve) => new Map(curve.points.map((point) => [point.x, point.y])));
    const rows: Cell[][] = thinned(xs, 40).map((x) => [format.time(x), ...at.map((of) => (of.has(x) ? lane.unit(of.get(x) ?? 0) : "-"))]);
    return h("figure", { class: "over-time" }, h("figcaption", {}, h("strong", {}, lane.title), " ", h("span", {}, lane.about)), place, more("Data table", table(lane.title, heads, rows)));
  });
  scale.addEventListener("change", () => redraws.forEach((draw) => draw()));
  const hint = "Drag to zoom, Shift and drag to move, click to go to an instant, double-click to show all. The wheel zooms after a click, or with Ctrl.";
  return [h("div", { class: "controls" }, h("label", {}, "Values ", scale), h("span", { class: "hint" }, hint)), ...figures];
}

export function rulesOf(run: RunDocument): Event[] {
  return run.deadlock ? [{ at: run.deadlock.closed_ps, text: "deadlock" }] : [];
}

function lines(lane: Lane, view: View, rules: Event[], width: number, log: boolean, place: HTMLElement): uPlot {
  const xs = [...new Set(lane.curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
  const ys = lane.curves.map((curve) => {
    const at = new Map(curve.points.map((point) => [point.x, point.y]));
    // A logarithmic axis has no 0.
    return xs.map((x) => {
      const y = at.get(x);
      return y === undefined || (log && y <= 0) ? null : y;
    });
  });
  const options = shared(view, rules, width, 150);
  options.legend = { live: true };
  options.series = [
    { label: "time", value: (_, x) => (x == null ? "-" : format.time(x)) },
    ...lane.curves.map((curve, i): uPlot.Series => {
      const { colour: stroke, dash } = look(i);
      return {
        label: curve.name,
        stroke: () => colour(stroke),
        width: 1.8,
        ...(dash === "none" ? {} : { dash: dash.split(" ").map(Number) }),
        value: (_, y) => (y == null ? "-" : lane.unit(y)),
        spanGaps: true,
        points: { show: false },
      };
    }),
  ];
  const values = options.axes?.[1];
  if (values) values.values = (_, at) => at.map((y) => (y === null ? "" : lane.unit(y)));
  options.scales = { ...options.scales, y: log ? { distr: 3 } : { range: (_, __, most) => [0, (most || 1) * 1.08] } };
  return new uPlot(options, [xs, ...ys] as uPlot.AlignedData, place);
}

/** The map of pauses: a row for each port, with the share of each bin in which it was paused. */
export function pauseMap(run: RunDocument, replay: Replay, view: View, pick: (port: number) => void): HTMLElement {
  const ports = run.pauses.ports.slice(0, MAPPED);
  const name = (port: number) => run.fabric.ports[port]?.name ?? "";
  const rows = ports.map((one) => ({ name: name(one.port), port: one.port, shares: levels(one.levels) }));
  const some = ports.length < run.pauses.paused_ports ? ` Shown: the ${ports.length} of ${run.pauses.paused_ports} paused ports that were paused longest.` : "";
  const about = `Colour: share of each time slice during which at least one queue of the port was paused. Click a row to see the port at that instant.${some}`;
  const place = h("div", { class: "lane map", role: "img", "aria-label": `Paused ports over time. ${about}` });
  const told = h("p", { class: "readout", "aria-hidden": "true" }, " ");
  const draw = (width: number) => {
    const height = 46 + rows.length * 15;
    const options = shared(view, rulesOf(run), width, height);
    options.legend = { show: false };
    const row = (u: uPlot, top: number) => Math.floor((top / u.over.clientHeight) * rows.length);
    options.series = [{}, { stroke: "transparent", points: { show: false } }];
    options.scales = { ...options.scales, y: { range: [0, rows.length] } };
    const axis = options.axes?.[1];
    if (axis) {
      axis.splits = () => rows.map((_, i) => rows.length - i - 0.5);
      axis.values = () => rows.map((one) => short(one.name, 15));
      axis.space = 1;
      axis.grid = { show: false };
      axis.font = "11px system-ui, sans-serif";
    }
    options.hooks = {
      ...options.hooks,
      drawClear: [
        (u) => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
          const tall = bbox.height / rows.length;
          rows.forEach((one, i) => {
            one.shares.forEach((share, bin) => {
              if (share === 0) return;
              const [left, right] = [replay.begin(bin), replay.begin(bin + 1)].map((at) => u.valToPos(at, "x", true)) as [number, number];
              ctx.fillStyle = colour(heat(share));
              ctx.fillRect(left, bbox.top + i * tall + 1, Math.max(1, right - left + 0.5), tall - 2);
            });
          });
          ctx.restore();
        },
      ],
      setCursor: [
        (u) => {
          const { left, top } = u.cursor;
          const one = top !== undefined && top >= 0 ? rows[row(u, top)] : undefined;
          if (!one || left === undefined || left < 0) return;
          const at = u.posToVal(left, "x");
          const share = one.shares[replay.bin(at)] ?? 0;
          told.textContent = `${format.time(at)}: ${one.name} was paused for ${format.percent(share)} of the slice`;
        },
      ],
      ready: [
        ...(options.hooks?.ready ?? []),
        (u) => u.over.addEventListener("click", (event) => {
          const one = rows[row(u, event.offsetY)];
          if (one) pick(one.port);
        }),
      ],
    };
    return new uPlot(options, [[0, view.end], [null, null]] as uPlot.AlignedData, place);
  };
  mount(place, view, draw);
  const numbers: Cell[][] = ports.map((one) => [name(one.port), format.time(one.paused_ps), format.percent(one.paused_ps / run.end_ps), format.count(one.count)]);
  return h(
    "figure",
    { class: "over-time" },
    h("figcaption", {}, h("strong", {}, "Paused ports over time"), " ", h("span", {}, about)),
    place,
    told,
    more("Data table", table("Paused ports over time", ["port", "paused", "share of the run", "pauses"], numbers)),
  );
}

/** A name that fits into `most` characters. */
export function short(name: string, most: number): string {
  return name.length <= most ? name : `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(name.length - Math.floor(most / 2))}`;
}
