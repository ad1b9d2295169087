// The picture of the fabric: devices, half a link for each egress port, and their states over time.

import { heat, heatLegend } from "./charts";
import type { RunDocument } from "./document";
import { h, s } from "./dom";
import * as format from "./format";
import { layout, type Place } from "./layout";
import { Replay, type Paused } from "./replay";

/** Devices beyond which a drawing shows nothing. */
const DRAWN = 1500;
/** Drawings wider than this have the whole width of the page. */
const WIDE = 1200;
/** Pictures in a second. */
const PACE = 16;

export interface Picked {
  port?: number;
  node?: number;
}

/** The drawing with its controls. `pick` is called for what is clicked or chosen. */
export function fabric(run: RunDocument, replay: Replay, pick: (what: Picked) => void): HTMLElement {
  const { nodes, ports } = run.fabric;
  if (nodes.length > DRAWN) {
    return h("p", {}, `${format.count(nodes.length)} devices are too many for a drawing. The tables and charts include them.`);
  }
  const { width, height, places, names, step, scale } = layout(run.fabric, (run.scenario as { topology?: unknown }).topology ?? {});
  const at = (node: number): Place => places[node] ?? { x: 0, y: 0 };
  const portName = (port: number) => {
    const it = ports[port];
    return it ? `${it.name} -> ${nodes[ports[it.peer]?.node ?? -1]?.name ?? ""}` : "";
  };

  // Half-links, parallel ones beside each other.
  const parallels = new Map<string, number>();
  const between = (a: number, b: number) => `${Math.min(a, b)} ${Math.max(a, b)}`;
  const pairs = ports.flatMap((port, i) => (i < port.peer ? [[i, port.peer] as const] : []));
  for (const [a, b] of pairs) {
    const key = between(ports[a]?.node ?? 0, ports[b]?.node ?? 0);
    parallels.set(key, (parallels.get(key) ?? 0) + 1);
  }
  const drawn = new Map<string, number>();
  const lines: SVGPathElement[] = [];
  const hits: SVGPathElement[] = [];
  const ends: Place[] = [];
  const beyond: Place[] = [];
  for (const [a, b] of pairs) {
    const [from, to] = [ports[a]?.node ?? 0, ports[b]?.node ?? 0];
    const key = between(from, to);
    const many = parallels.get(key) ?? 1;
    const number = drawn.get(key) ?? 0;
    drawn.set(key, number + 1);
    const [p, q] = [at(Math.min(from, to)), at(Math.max(from, to))];
    const length = Math.hypot(q.x - p.x, q.y - p.y) || 1;
    const wraps = run.fabric.topology === "torus-2d" && length > 160;
    const bend = (number - (many - 1) / 2) * 14 + (wraps ? 44 : 0);
    const control = { x: (p.x + q.x) / 2 - ((q.y - p.y) / length) * bend, y: (p.y + q.y) / 2 + ((q.x - p.x) / length) * bend };
    for (const [port, near, far] of [[a, at(from), at(to)], [b, at(to), at(from)]] as const) {
      const c1 = { x: (near.x + control.x) / 2, y: (near.y + control.y) / 2 };
      const c2 = { x: (far.x + control.x) / 2, y: (far.y + control.y) / 2 };
      const middle = { x: (c1.x + c2.x) / 2, y: (c1.y + c2.y) / 2 };
      const d = `M${round(near.x)} ${round(near.y)}Q${round(c1.x)} ${round(c1.y)} ${round(middle.x)} ${round(middle.y)}`;
      lines[port] = s("path", { d, class: "port" });
      hits[port] = s("path", { d, class: "hit", id: `port-${port}`, role: "option", "aria-label": portName(port), "data-port": port });
      hits[port]?.append(s("title", {}, portName(port)));
      const along = (pixels: number) => {
        const reach = Math.min(0.9, (2 * pixels) / length);
        return { x: near.x + (middle.x - near.x) * reach, y: near.y + (middle.y - near.y) * reach };
      };
      // Beside the device: numbers of a deadlock, and after them the marks of congested ports.
      ends[port] = along(26);
      beyond[port] = along(44);
    }
  }

  const boxes = nodes.map((node, i) => {
    const { x, y } = at(i);
    const group = s("g", { class: `node ${node.kind}`, "data-node": i, transform: `translate(${round(x)} ${round(y)})${node.kind === "host" ? "" : ` scale(${round(scale)})`}` });
    const fill = s("rect", { class: "fill" });
    if (node.kind === "host") {
      const r = Math.max(3, Math.min(8, step / 2.6));
      group.append(s("circle", { r }));
      fill.setAttribute("x", String(-r / 2));
      fill.setAttribute("width", String(r));
      if (step >= 26) group.append(s("text", { y: names.length > 0 ? r + 12 : 4, x: names.length > 0 ? 0 : r + 3, "text-anchor": names.length > 0 ? "middle" : "start" }, node.name));
    } else {
      group.append(s("rect", { x: -22, y: -11, width: 44, height: 22, rx: 3 }));
      fill.setAttribute("x", "-22");
      fill.setAttribute("width", "8");
      group.append(s("text", { y: 4, x: 4, "text-anchor": "middle" }, node.name));
    }
    group.append(fill, s("title", {}, node.name));
    return { group, fill, half: node.kind === "host" ? Math.max(3, Math.min(8, step / 2.6)) : 11 };
  });

  const halos = s("g", { class: "cycle" });
  const numbers = s("g", { class: "cycle" });
  const marks = s("g", { class: "roots" });
  (run.deadlock?.cycle ?? []).forEach(({ port }, i) => {
    const d = lines[port]?.getAttribute("d");
    const end = ends[port];
    if (!d || !end) return;
    halos.append(s("path", { d }));
    numbers.append(s("circle", { cx: round(end.x), cy: round(end.y), r: 8 }), s("text", { x: round(end.x), y: round(end.y + 4), "text-anchor": "middle" }, String(i + 1)));
  });

  const svg = s(
    "svg",
    {
      id: "fabric-drawing",
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
      tabindex: 0,
      role: "listbox",
      "aria-label": "The fabric. Arrow keys select a port; Enter shows its details.",
      // Wide fabrics scroll rather than shrink beyond recognition.
      style: `min-width:${Math.ceil(width * 0.42)}px;max-width:${Math.ceil(width * 1.4)}px`,
    },
    s("g", { class: "names" }, ...names.map(({ text, y }) => s("text", { x: 4, y: y + 4, style: `font-size:${Math.round(12 * scale)}px` }, text))),
    s("g", {}, ...lines),
    halos,
    // Devices are above the ends of their links, so each can be clicked.
    s("g", {}, ...hits),
    s("g", {}, ...boxes.map((box) => box.group)),
    marks,
    numbers,
  );

  // Controls.
  const slider = h("input", { id: "time", type: "range", min: "0", max: String(replay.bins - 1), step: "1", "aria-label": "time" });
  const clock = h("output", { id: "clock", for: "time" });
  const play = h("button", { id: "play", type: "button", "aria-pressed": "false" }, "Play");
  const status = h("p", { id: "now", role: "status" });
  const roots = replay.roots();
  const highlight = h("select", { id: "tree" }, h("option", { value: "-1" }, "all pauses"), ...roots.slice(0, 40).map((root) => h("option", { value: String(root) }, `pauses caused by ${portName(root)}`)));
  const bySelect = h("select", { id: "pick-port" }, h("option", { value: "" }, "choose…"), ...ports.map((port, i) => h("option", { value: String(i) }, port.name)));

  let bin = -1;
  let chosen = -1;
  const show = (next: number) => {
    bin = Math.max(0, Math.min(replay.bins - 1, next));
    slider.value = String(bin);
    const now = replay.at(bin);
    const only = Number(highlight.value);
    const congested = new Map<number, number>();
    for (const { root } of now.values()) if (root >= 0) congested.set(root, (congested.get(root) ?? 0) + 1);
    lines.forEach((line, port) => {
      const paused = now.get(port);
      const dim = only >= 0 && paused?.root !== only;
      paint(line, paused, dim, replay.queued(port, bin));
    });
    boxes.forEach(({ fill, half }, node) => {
      const share = replay.filled(node, bin) ?? 0;
      fill.setAttribute("y", String(round(half - share * 2 * half)));
      fill.setAttribute("height", String(round(share * 2 * half)));
    });
    marks.replaceChildren(
      ...[...congested.keys()].flatMap((root) => {
        const end = beyond[root];
        if (!end || (only >= 0 && root !== only)) return [];
        const { x, y } = end;
        return [s("path", { class: "root", d: `M${round(x)} ${round(y - 7)}l7 7l-7 7l-7 -7z` }, s("title", {}, `congested: ${portName(root)}`))];
      }),
    );
    const dead = replay.deadlocked(bin);
    for (const group of [halos, numbers]) group.setAttribute("visibility", dead ? "visible" : "hidden");
    const [from, to] = [replay.begin(bin), replay.begin(bin + 1)];
    clock.value = format.time(from);
    slider.setAttribute("aria-valuetext", format.time(from));
    status.textContent = words(from, to, now.size, congested, dead);
  };

  const words = (from: number, to: number, paused: number, congested: Map<number, number>, dead: boolean): string => {
    const parts = [`${format.time(from)} to ${format.time(to)}:`];
    parts.push(paused === 0 ? "no port is paused." : `${paused} of ${ports.length} ports are paused.`);
    if (congested.size > 0) {
      const most = [...congested].sort((a, b) => b[1] - a[1]).slice(0, 3);
      parts.push(`Congested: ${most.map(([root, n]) => `${portName(root)} (${n})`).join(", ")}${congested.size > 3 ? ` and ${congested.size - 3} more` : ""}.`);
    }
    if (dead) parts.push("The fabric is in deadlock: the numbers show the cycle.");
    return parts.join(" ");
  };

  const choose = (port: number) => {
    hits[chosen]?.classList.remove("chosen");
    hits[chosen]?.removeAttribute("aria-selected");
    chosen = port;
    hits[port]?.classList.add("chosen");
    hits[port]?.setAttribute("aria-selected", "true");
    svg.setAttribute("aria-activedescendant", `port-${port}`);
    bySelect.value = String(port);
  };

  svg.addEventListener("click", (event) => {
    const target = event.target as Element;
    const port = target.closest("[data-port]")?.getAttribute("data-port");
    const node = target.closest("[data-node]")?.getAttribute("data-node");
    if (port) {
      choose(Number(port));
      pick({ port: Number(port) });
    } else if (node) {
      pick({ node: Number(node) });
    }
  });
  // Paused ports first: readers look for them.
  svg.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const by = steps[event.key];
    if (by !== undefined) {
      event.preventDefault();
      const paused = [...replay.at(bin).keys()].sort((a, b) => a - b);
      const list = paused.length > 0 ? paused : ports.map((_, i) => i);
      const i = list.indexOf(chosen);
      choose(list[(i < 0 ? (by > 0 ? 0 : list.length - 1) : i + by + list.length) % list.length] ?? 0);
    } else if ((event.key === "Enter" || event.key === " ") && chosen >= 0) {
      event.preventDefault();
      pick({ port: chosen });
    }
  });
  bySelect.addEventListener("change", () => {
    if (bySelect.value === "") return;
    choose(Number(bySelect.value));
    pick({ port: chosen });
  });
  highlight.addEventListener("change", () => show(bin));

  let timer: number | undefined;
  const stop = () => {
    window.clearInterval(timer);
    timer = undefined;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
    // During playback a screen reader cannot read every picture.
    status.setAttribute("aria-live", "polite");
  };
  play.addEventListener("click", () => {
    if (timer !== undefined) return stop();
    if (bin === replay.bins - 1) show(0);
    play.textContent = "Stop";
    play.setAttribute("aria-pressed", "true");
    status.setAttribute("aria-live", "off");
    timer = window.setInterval(() => {
      if (bin === replay.bins - 1) return stop();
      show(bin + 1);
    }, 1000 / PACE);
  });
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  const jump = (label: string, to: number) => {
    const button = h("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      stop();
      show(to);
    });
    return button;
  };
  const jumps = [jump("Start", 0)];
  if (run.pauses.count > 0) jumps.push(jump("First pause", replay.first()));
  if (run.deadlock) jumps.push(jump("Deadlock", replay.bin(run.deadlock.closed_ps)));
  jumps.push(jump("End", replay.bins - 1));
  show(run.deadlock ? replay.bin(run.deadlock.closed_ps) : busiest(replay, run.pauses.count > 0));

  return h(
    "div",
    // In half a page, the reader could not distinguish hundreds of hosts.
    { class: width > WIDE ? "fabric wide" : "fabric" },
    h("div", { class: "controls" }, play, slider, clock),
    h("div", { class: "controls" }, ...jumps, h("label", {}, "Show ", highlight), h("label", {}, "Port ", bySelect)),
    status,
    h("div", { class: "drawing" }, svg),
    legend(run),
  );
}

/** The bin in which most is paused; of a run without pauses, in which most is held. */
function busiest(replay: Replay, paused: boolean): number {
  let [best, most] = [0, 0];
  for (let bin = 0; bin < replay.bins; bin += 1) {
    let sum = 0;
    for (const { share } of replay.at(bin).values()) sum += share;
    if (!paused) sum = replay.held(bin);
    if (sum > most) [best, most] = [bin, sum];
  }
  return best;
}

function paint(line: SVGPathElement, paused: Paused | undefined, dim: boolean, queued: number | undefined) {
  line.style.stroke = paused ? heat(paused.share) : "";
  const wide = paused ? 3 + 3 * paused.share : 1.2 + 4 * (queued ?? 0);
  line.style.strokeWidth = String(round(wide));
  line.style.strokeDasharray = paused && paused.share >= 1 ? "5 2" : "";
  line.style.opacity = dim ? "0.25" : "";
}

const round = (x: number) => Math.round(x * 10) / 10;

function legend(run: RunDocument): HTMLElement {
  const sample = (style: string, text: string) =>
    h("li", {}, s("svg", { width: 34, height: 10, "aria-hidden": "true" }, s("line", { x1: 0, x2: 34, y1: 5, y2: 5, style })), ` ${text}`);
  const items = [
    sample("stroke:var(--line-strong);stroke-width:1.2", "each half-link is one port; thin: free to send"),
    sample("stroke:var(--h5);stroke-width:6;stroke-dasharray:5 2", "paused during the whole time slice"),
    sample("stroke:var(--h2);stroke-width:4.2", "paused during a part of the time slice"),
  ];
  if (run.pauses.roots_known) {
    items.push(h("li", {}, s("svg", { width: 16, height: 16, "aria-hidden": "true" }, s("path", { class: "root", d: "M8 1l7 7l-7 7l-7 -7z" })), " congestion root: the congested port that causes pauses"));
  }
  if (run.deadlock) {
    items.push(sample("stroke:var(--alarm);stroke-width:9;opacity:.45", "a port of the deadlock; each waits for the next number"));
  }
  if (run.series.nodes.most > 0) {
    items.push(h("li", {}, h("span", { class: "swatch level" }), ` buffer occupancy of a device; full height: ${format.bytes(run.series.nodes.most)}`));
  }
  const shares = run.pauses.count > 0 ? h("p", { class: "legend-title" }, "Share of the time slice during which a port was paused") : null;
  return h("div", { class: "legends" }, h("ul", { class: "legend" }, ...items), shares ?? "", run.pauses.count > 0 ? heatLegend() : "");
}
