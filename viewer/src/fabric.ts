// The picture of the fabric: devices, half a link for each egress port, and their states at the instant of the view.

import { chain } from "./causes";
import { heat, heatLegend } from "./charts";
import type { RunDocument } from "./document";
import { h, s } from "./dom";
import * as format from "./format";
import { layout, type Place } from "./layout";
import { Replay, type Paused } from "./replay";
import { short } from "./timeline";
import type { View } from "./view";

/** Links between switches beyond which only those are drawn at which something happened. */
const LINKS = 3000;
/** Links beyond which a drawing shows the pauses of one congested port at first. */
const MANY = 150;
/** Drawings wider than this have the whole width of the page. */
const WIDE = 1200;
/** Width of a letter in the name of a device. */
const LETTER = 6.6;

/** The drawing. What is clicked or chosen in it is chosen in the view. Of two on a page, one has a suffix to its ids. */
export function fabric(run: RunDocument, replay: Replay, view: View, suffix = ""): { drawing: HTMLElement; legend: HTMLElement; isWide: boolean } {
  const { nodes, ports } = run.fabric;
  const { width, height, places, names, step, scale, cell, room } = layout(run.fabric, (run.scenario as { topology?: unknown }).topology ?? {});
  const at = (node: number): Place => places[node] ?? { x: 0, y: 0 };
  const portName = (port: number) => {
    const it = ports[port];
    return it ? `${it.name} -> ${nodes[ports[it.peer]?.node ?? -1]?.name ?? ""}` : "";
  };
  const isHost = (port: number) => nodes[ports[port]?.node ?? -1]?.kind === "host";

  // Half-links, parallel ones beside each other. Where hosts are cells, their links are not drawn.
  const parallels = new Map<string, number>();
  const between = (a: number, b: number) => `${Math.min(a, b)} ${Math.max(a, b)}`;
  const all = ports.flatMap((port, i) => (i < port.peer ? [[i, port.peer] as const] : []));
  const inFabric = all.filter(([a, b]) => cell === 0 || (!isHost(a) && !isHost(b)));
  const eventful = new Set(run.pauses.ports.map((one) => one.port));
  const pairs = inFabric.length <= LINKS ? inFabric : inFabric.filter(([a, b]) => eventful.has(a) || eventful.has(b));
  for (const [a, b] of pairs) {
    const key = between(ports[a]?.node ?? 0, ports[b]?.node ?? 0);
    parallels.set(key, (parallels.get(key) ?? 0) + 1);
  }
  const drawn = new Map<string, number>();
  const lines: SVGPathElement[] = [];
  const hits: SVGElement[] = [];
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
      hits[port] = s("path", { d, class: "hit", id: `port-${port}${suffix}`, role: "option", "aria-label": portName(port), "data-port": port }, s("title", {}, portName(port)));
      const along = (pixels: number) => {
        const reach = Math.min(0.9, (2 * pixels) / length);
        return { x: near.x + (middle.x - near.x) * reach, y: near.y + (middle.y - near.y) * reach };
      };
      // Beside the device: numbers of a deadlock, and after them the marks of congested ports.
      ends[port] = along(34);
      beyond[port] = along(52);
    }
  }
  // Marks of the ports of hosts that are cells, and of those to them.
  ports.forEach((port, i) => {
    if (beyond[i] || cell === 0) return;
    const host = isHost(i) ? port.node : (ports[port.peer]?.node ?? 0);
    if (nodes[host]?.kind === "host") beyond[i] = ends[i] = at(host);
  });

  const boxes = nodes.map((node, i) => {
    const { x, y } = at(i);
    const asCell = node.kind === "host" && cell > 0;
    const group = s("g", { class: `node ${node.kind}${asCell ? " cell" : ""}`, "data-node": i, transform: `translate(${round(x)} ${round(y)})${node.kind === "host" ? "" : ` scale(${round(scale)})`}` });
    const fill = s("rect", { class: "fill" });
    let half = 11;
    if (asCell) {
      half = cell / 2 - 0.75;
      group.append(s("rect", { x: -half, y: -half, width: 2 * half, height: 2 * half }));
      fill.setAttribute("x", String(-half));
      fill.setAttribute("width", String(half));
    } else if (node.kind === "host") {
      half = Math.max(3, Math.min(8, step / 2.6));
      group.append(s("circle", { r: half }));
      fill.setAttribute("x", String(-half / 2));
      fill.setAttribute("width", String(half));
      const inRow = names.length > 0;
      const name = inRow ? short(node.name, Math.max(4, Math.floor(step / LETTER))) : node.name;
      if (step >= 26) group.append(s("text", { y: inRow ? half + 12 : 4, x: inRow ? 0 : half + 3, "text-anchor": inRow ? "middle" : "start" }, name));
    } else {
      // As wide as its name, where there is room.
      const free = (room[i] ?? Infinity) / scale - 4;
      const wide = Math.max(12, Math.min(free, Math.max(44, node.name.length * LETTER + 18)));
      group.append(s("rect", { x: -wide / 2, y: -11, width: wide, height: 22, rx: 3 }));
      fill.setAttribute("x", String(-wide / 2));
      fill.setAttribute("width", String(Math.min(8, wide / 4)));
      const letters = Math.floor((wide - 12) / LETTER);
      // Smaller letters rather than fewer, as far as they can be read.
      const size = Math.min(11, ((wide - 10) * 11) / (node.name.length * LETTER));
      if (size >= 7.5) group.append(s("text", { y: 4, x: 4, "text-anchor": "middle", style: `font-size:${round(size)}px` }, node.name));
      else if (letters >= 1) {
        // Of names with parts the last one.
        const last = node.name.slice(node.name.lastIndexOf(".") + 1);
        group.append(s("text", { y: 4, x: 3, "text-anchor": "middle", style: "font-size:9px" }, last.length <= letters + 1 ? last : short(node.name, Math.max(3, letters))));
      }
    }
    group.append(fill, s("title", {}, node.name));
    return { group, fill, half, asCell };
  });

  const halos = s("g", { class: "cycle" });
  const numbers = s("g", { class: "cycle" });
  const marks = s("g", { class: "roots" });
  const path = s("g", { class: "path", id: `lit-path${suffix}` });
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
      id: `fabric-drawing${suffix}`,
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
      tabindex: 0,
      role: "listbox",
      "aria-label": "The fabric. Arrow keys select a port; Enter shows its details.",
      // Wide fabrics scroll rather than shrink beyond recognition.
      style: `--narrow:${Math.ceil(width * 0.42)}px;--readable:${Math.ceil(width)}px;max-width:${Math.ceil(width * 1.4)}px`,
    },
    s("g", { class: "names" }, ...names.map(({ text, y }) => s("text", { x: 4, y: y + 4, style: `font-size:${Math.round(12 * scale)}px` }, text))),
    path,
    s("g", { class: pairs.length > MANY ? "many" : "" }, ...Object.values(lines)),
    halos,
    // Devices are above the ends of their links, so each can be clicked.
    s("g", {}, ...Object.values(hits)),
    s("g", {}, ...boxes.map((box) => box.group)),
    marks,
    numbers,
  );

  const status = h("p", { id: `now${suffix}`, role: "status" });
  const roots = replay.roots();
  const highlight = h("select", { id: `tree${suffix}` }, h("option", { value: "-1" }, "all pauses"), ...roots.slice(0, 40).map((root) => h("option", { value: String(root) }, `pauses caused by ${portName(root)}`)));
  const listed = ports.length > 4000 ? run.pauses.ports.map((one) => one.port) : ports.map((_, i) => i);
  const bySelect = h("select", { id: `pick-port${suffix}` }, h("option", { value: "" }, "choose…"), ...listed.map((i) => h("option", { value: String(i) }, ports[i]?.name ?? "")));

  const show = () => {
    const bin = replay.bin(view.time);
    const now = replay.at(bin);
    const only = view.root;
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
    if (cell > 0) paintCells(now, only);
    const main = only >= 0 ? only : [...congested].sort((a, b) => b[1] - a[1])[0]?.[0];
    marks.replaceChildren(
      ...[...congested.keys()].flatMap((root) => {
        const end = beyond[root];
        if (!end || (only >= 0 && root !== only)) return [];
        const { x, y } = end;
        // The one for which most ports are paused is larger, and has its name.
        const isMain = root === main;
        const r = isMain ? 11 : 7;
        const mark = s("path", { class: "root", d: `M${round(x)} ${round(y - r)}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` }, s("title", {}, `congested: ${portName(root)}`));
        return isMain ? [mark, s("text", { x: round(x + 15), y: round(y + 4) }, ports[root]?.name ?? "")] : [mark];
      }),
    );
    const dead = replay.deadlocked(bin);
    for (const group of [halos, numbers]) group.setAttribute("visibility", dead ? "visible" : "hidden");
    status.textContent = words(replay.begin(bin), replay.begin(bin + 1), now.size, congested, dead);
  };

  /** A cell has the colour of its host's paused port, or of the paused port that leads to it. */
  const paintCells = (now: Map<number, Paused>, only: number) => {
    const shares = new Map<number, number>();
    for (const [port, paused] of now) {
      if (only >= 0 && paused.root !== only) continue;
      const host = isHost(port) ? ports[port]?.node : ports[ports[port]?.peer ?? -1]?.node;
      if (host !== undefined && nodes[host]?.kind === "host") shares.set(host, Math.max(shares.get(host) ?? 0, paused.share));
    }
    boxes.forEach(({ group, asCell }, node) => {
      if (!asCell) return;
      const share = shares.get(node);
      (group.firstElementChild as SVGElement).style.fill = share === undefined ? "" : heat(share);
    });
  };

  const words = (from: number, to: number, paused: number, congested: Map<number, number>, dead: boolean): string => {
    const parts = [`${format.time(from)} to ${format.time(to)}:`];
    parts.push(paused === 0 ? "no port is paused." : `${paused} of ${ports.length} ports are paused.`);
    if (congested.size > 0) {
      const most = [...congested].sort((a, b) => b[1] - a[1]).slice(0, 3);
      parts.push(`Congested: ${most.map(([root, n]) => `${portName(root)} (${n})`).join(", ")}${congested.size > 3 ? ` and ${congested.size - 3} more` : ""} (ports paused because of each).`);
    }
    if (dead) parts.push("The fabric is in deadlock: the numbers show the cycle.");
    return parts.join(" ").replaceAll(" -> ", "\u00a0→\u00a0");
  };

  /** The port that the arrow keys have reached; Enter chooses it. */
  let reached = -1;
  const reach = (port: number) => {
    hits[reached]?.classList.remove("chosen");
    hits[reached]?.removeAttribute("aria-selected");
    reached = port;
    hits[port]?.classList.add("chosen");
    hits[port]?.setAttribute("aria-selected", "true");
    svg.setAttribute("aria-activedescendant", `port-${port}${suffix}`);
    bySelect.value = String(port);
  };

  /** The path of the chosen flow or pause, and its congested ports. */
  const light = () => {
    const { flow, port, node } = view.chosen;
    if (port !== undefined && port !== reached) reach(port);
    const story = flow === undefined ? undefined : run.stories?.flows[flow];
    const row = flow === undefined ? undefined : run.flows.rows.find((one) => one.id === flow);
    const along = story ? story.steps.filter((part) => part.leg !== "ack").map((part) => part.port) : [];
    const blamed = new Set(story?.steps.flatMap((part) => part.shares.flatMap(([, root]) => (root >= 0 ? [root] : []))));
    // Of a paused port, the way to the congested port that it waits for.
    const waits = port === undefined ? [] : chain(run, replay, port, replay.bin(view.time));
    if (waits.length > 1) {
      blamed.add(waits.pop() ?? -1);
      along.push(...waits);
    }
    const halves = along.flatMap((one) => [one, ports[one]?.peer ?? -1]);
    path.replaceChildren(
      ...halves.flatMap((one) => {
        const d = lines[one]?.getAttribute("d");
        return d ? [s("path", { d })] : [];
      }),
      ...[...blamed].flatMap((root) => {
        const d = lines[root]?.getAttribute("d");
        return d ? [s("path", { d, class: "blamed" })] : [];
      }),
    );
    const ends = new Set(row ? [row.src, row.dst] : node !== undefined ? [node] : []);
    boxes.forEach(({ group }, i) => group.classList.toggle("lit", ends.has(i)));
  };
  view.on("time", show);
  view.on("root", () => {
    highlight.value = String(view.root);
    show();
  });
  view.on("chosen", light);

  svg.addEventListener("click", (event) => {
    const target = event.target as Element;
    const port = target.closest("[data-port]")?.getAttribute("data-port");
    const node = target.closest("[data-node]")?.getAttribute("data-node");
    if (port) view.choose({ port: Number(port) });
    else if (node) view.choose({ node: Number(node) });
  });
  // Paused ports first: readers look for them.
  svg.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const by = steps[event.key];
    if (by !== undefined) {
      event.preventDefault();
      const paused = [...replay.at(replay.bin(view.time)).keys()].filter((port) => hits[port]).sort((a, b) => a - b);
      const list = paused.length > 0 ? paused : Object.keys(hits).map(Number);
      const i = list.indexOf(reached);
      reach(list[(i < 0 ? (by > 0 ? 0 : list.length - 1) : i + by + list.length) % list.length] ?? 0);
    } else if ((event.key === "Enter" || event.key === " ") && reached >= 0) {
      event.preventDefault();
      view.choose({ port: reached });
    }
  });
  bySelect.addEventListener("change", () => {
    if (bySelect.value !== "") view.choose({ port: Number(bySelect.value) });
  });
  highlight.addEventListener("change", () => view.setRoot(Number(highlight.value)));
  // Of many links, those of the main congested port first.
  if (pairs.length > MANY && roots[0] !== undefined) view.setRoot(roots[0]);
  show();

  const some = pairs.length < inFabric.length ? h("p", { class: "hint" }, `${format.count(pairs.length)} of ${format.count(inFabric.length)} links between switches are drawn: those whose ports were paused.`) : "";
  const cells = cell > 0 ? h("p", { class: "hint" }, "Each small square is a host, below its switch. Its colour shows a pause of its port, or of the port that leads to it.") : "";
  return {
    drawing: h("div", { class: "fabric" }, h("div", { class: "drawing" }, svg), status),
    legend: h("div", {}, h("div", { class: "controls" }, h("label", {}, "Show ", highlight), h("label", {}, "Port ", bySelect)), some, cells, legend(run)),
    // In half a page, the reader could not distinguish hundreds of hosts.
    isWide: width > WIDE,
  };
}

/** The instant at which a page opens: that of its banner, else the one at which most is paused or held. */
export function firstInstant(run: RunDocument, replay: Replay): number {
  const at = run.banner.at_ps;
  if (at !== null && at <= run.clock.end_ps) return at;
  let [best, most] = [0, 0];
  for (let bin = 0; bin < replay.bins; bin += 1) {
    let sum = 0;
    for (const { share } of replay.at(bin).values()) sum += share;
    if (run.pauses.count === 0) sum = replay.held(bin);
    if (sum > most) [best, most] = [bin, sum];
  }
  return replay.begin(best);
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
  if (run.stories) items.push(sample("stroke:var(--c1);stroke-width:9;opacity:.6", "the path of the chosen flow"));
  if (run.series.nodes.most > 0) {
    items.push(h("li", {}, h("span", { class: "swatch level" }), ` buffer occupancy of a device; full height: ${format.bytes(run.series.nodes.most)}`));
  }
  const shares = run.pauses.count > 0 ? h("p", { class: "legend-title" }, "Share of the time slice during which a port was paused") : null;
  return h("div", { class: "legends" }, h("ul", { class: "legend" }, ...items), shares ?? "", run.pauses.count > 0 ? heatLegend() : "");
}
