// The picture of the fabric: devices, half a link for each egress port, and their states at the instant of the view.

import { chain } from "./causes";
import { heat, heatLegend } from "./charts";
import type { RunDocument } from "./document";
import { h, s } from "./dom";
import * as format from "./format";
import { folded, layout, podsOf, type Place } from "./layout";
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
  const portName = (port: number) => {
    const it = ports[port];
    return it ? `${it.name} -> ${nodes[ports[it.peer]?.node ?? -1]?.name ?? ""}` : "";
  };
  const isHost = (port: number) => nodes[ports[port]?.node ?? -1]?.kind === "host";
  const pods = podsOf(run.fabric);
  const open = new Set<number>();
  const svg = s("svg", { id: `fabric-drawing${suffix}`, tabindex: 0, role: "listbox", "aria-label": "The fabric. Arrow keys select a port; Enter shows its details." });
  let parts = build(run, pods, open, portName, suffix);
  const draw = () => {
    parts = build(run, pods, open, portName, suffix);
    svg.replaceChildren(...parts.children);
    svg.setAttribute("viewBox", `0 0 ${Math.ceil(parts.width)} ${Math.ceil(parts.height)}`);
    // Wide fabrics scroll rather than shrink beyond recognition.
    svg.setAttribute("style", `--narrow:${Math.ceil(parts.width * 0.42)}px;--readable:${Math.ceil(parts.width)}px;max-width:${Math.ceil(parts.width * 1.4)}px`);
  };
  draw();

  /** By pod, its ports. */
  const sizes = new Map<number, number>();
  for (const port of ports) {
    const pod = pods[port.node] ?? -1;
    if (pod >= 0) sizes.set(pod, (sizes.get(pod) ?? 0) + 1);
  }
  const status = h("p", { id: `now${suffix}`, role: "status" });
  const roots = replay.roots();
  const highlight = h("select", { id: `tree${suffix}` }, h("option", { value: "-1" }, "all pauses"), ...roots.slice(0, 40).map((root) => h("option", { value: String(root) }, `pauses caused by ${portName(root)}`)));
  const listed = ports.length > 4000 ? run.pauses.ports.map((one) => one.port) : ports.map((_, i) => i);
  const bySelect = h("select", { id: `pick-port${suffix}` }, h("option", { value: "" }, "choose…"), ...listed.map((i) => h("option", { value: String(i) }, ports[i]?.name ?? "")));

  /** The congested port whose pauses are shown, if this run has it. */
  const ours = () => (roots.includes(view.root) ? view.root : -1);
  const show = () => {
    const bin = replay.bin(view.time);
    const now = replay.at(bin);
    const only = ours();
    const congested = new Map<number, number>();
    for (const { root } of now.values()) if (root >= 0) congested.set(root, (congested.get(root) ?? 0) + 1);
    parts.lines.forEach((line, port) => {
      const paused = now.get(port);
      const dim = only >= 0 && paused?.root !== only;
      paint(line, paused, dim, replay.queued(port, bin));
    });
    parts.boxes.forEach((box, node) => {
      if (!box) return;
      const { fill, half } = box;
      const share = replay.filled(node, bin) ?? 0;
      fill.setAttribute("y", String(round(half - share * 2 * half)));
      fill.setAttribute("height", String(round(share * 2 * half)));
    });
    if (parts.cell > 0) paintCells(now, only);
    const main = only >= 0 ? only : [...congested].sort((a, b) => b[1] - a[1])[0]?.[0];
    parts.marks.replaceChildren(
      ...[...congested.keys()].flatMap((root) => {
        const end = parts.beyond[root];
        if (!end || (only >= 0 && root !== only)) return [];
        const { x, y } = end;
        // The one for which most ports are paused is larger, and has its name.
        const isMain = root === main;
        const r = isMain ? 11 : 7;
        const mark = s("path", { class: "root", d: `M${round(x)} ${round(y - r)}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` }, s("title", {}, `congested: ${portName(root)}`));
        return isMain ? [mark, s("text", { x: round(x + 15), y: round(y + 4) }, ports[root]?.name ?? "")] : [mark];
      }),
    );
    paintPods(now, only);
    const dead = replay.deadlocked(bin);
    for (const group of [parts.halos, parts.numbers]) group.setAttribute("visibility", dead ? "visible" : "hidden");
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
    parts.boxes.forEach((box, node) => {
      if (!box?.asCell) return;
      const share = shares.get(node);
      (box.group.firstElementChild as SVGElement).style.fill = share === undefined ? "" : heat(share);
    });
  };

  /** A folded pod has the colour of the share of its ports that are paused, and their number. */
  const paintPods = (now: Map<number, Paused>, only: number) => {
    const counts = new Map<number, number>();
    for (const [port, paused] of now) {
      const pod = pods[ports[port]?.node ?? -1] ?? -1;
      if (pod >= 0 && (only < 0 || paused.root === only)) counts.set(pod, (counts.get(pod) ?? 0) + 1);
    }
    for (const { pod, rect, count } of parts.folds) {
      const n = counts.get(pod) ?? 0;
      const of = sizes.get(pod) ?? 1;
      if (!open.has(pod)) rect.style.fill = n === 0 ? "" : heat(n / of);
      rect.classList.toggle("hot", n > 0 && !open.has(pod));
      count.textContent = n === 0 ? "no pause" : `${n} paused`;
    }
  };

  const words = (from: number, to: number, paused: number, congested: Map<number, number>, dead: boolean): string => {
    const said = [`${format.time(from)} to ${format.time(to)}:`];
    said.push(paused === 0 ? "no port is paused." : `${format.count(paused)} of ${format.count(ports.length)} ports are paused.`);
    if (congested.size > 0) {
      const most = [...congested].sort((a, b) => b[1] - a[1]).slice(0, 3);
      said.push(`Congested: ${most.map(([root, n]) => `${portName(root)} (${n})`).join(", ")}${congested.size > 3 ? ` and ${congested.size - 3} more` : ""} (ports paused because of each).`);
    }
    if (dead) said.push("The fabric is in deadlock: the numbers show the cycle.");
    return said.join(" ").replaceAll(" -> ", "\u00a0→\u00a0");
  };

  /** The port that the arrow keys have reached; Enter chooses it. */
  let reached = -1;
  const reach = (port: number) => {
    parts.hits[reached]?.classList.remove("chosen");
    parts.hits[reached]?.removeAttribute("aria-selected");
    reached = port;
    parts.hits[port]?.classList.add("chosen");
    parts.hits[port]?.setAttribute("aria-selected", "true");
    svg.setAttribute("aria-activedescendant", `port-${port}${suffix}`);
    bySelect.value = String(port);
  };

  const redraw = () => {
    draw();
    if (reached >= 0) reach(reached);
    show();
  };
  const unfold = h("select", { id: `pods${suffix}` }, h("option", { value: "" }, "choose…"), ...[...sizes.keys()].map((pod) => h("option", { value: String(pod) }, `pod ${pod}`)));
  const toggle = (pod: number) => {
    if (!open.delete(pod)) open.add(pod);
    redraw();
    light();
  };
  unfold.addEventListener("change", () => {
    if (unfold.value !== "") toggle(Number(unfold.value));
    unfold.value = "";
  });

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
    parts.path.replaceChildren(
      ...halves.flatMap((one) => {
        const d = parts.lines[one]?.getAttribute("d");
        return d ? [s("path", { d })] : [];
      }),
      ...[...blamed].flatMap((root) => {
        const d = parts.lines[root]?.getAttribute("d");
        return d ? [s("path", { d, class: "blamed" })] : [];
      }),
    );
    const ends = new Set(row ? [row.src, row.dst] : node !== undefined ? [node] : []);
    parts.boxes.forEach((box, i) => box?.group.classList.toggle("lit", ends.has(i)));
  };
  /** The folded pods of a flow's hosts, or of a device. */
  const unseen = (flow: number | undefined, node: number | undefined): number[] => {
    const row = flow === undefined ? undefined : run.flows.rows.find((one) => one.id === flow);
    const its = row ? [row.src, row.dst] : node !== undefined ? [node] : [];
    return [...new Set(its.map((one) => pods[one] ?? -1))].filter((pod) => pod >= 0 && !open.has(pod));
  };
  view.on("time", show);
  view.on("root", () => {
    highlight.value = String(ours());
    show();
  });
  view.on("chosen", () => {
    const hidden = unseen(view.chosen.flow, view.chosen.node);
    if (hidden.length > 0) {
      hidden.forEach((pod) => open.add(pod));
      redraw();
    }
    light();
  });

  svg.addEventListener("click", (event) => {
    const target = event.target as Element;
    const pod = target.closest("[data-pod]")?.getAttribute("data-pod");
    if (pod) return toggle(Number(pod));
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
      const paused = [...replay.at(replay.bin(view.time)).keys()].filter((port) => parts.hits[port]).sort((a, b) => a - b);
      const list = paused.length > 0 ? paused : Object.keys(parts.hits).map(Number);
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
  if (parts.pairs > MANY && roots[0] !== undefined && suffix === "" && view.root < 0) view.setRoot(roots[0]);
  show();

  const some = parts.pairs < parts.ofPairs ? h("p", { class: "hint" }, `${format.count(parts.pairs)} of ${format.count(parts.ofPairs)} links between switches are drawn: those whose ports were paused.`) : "";
  const cells = parts.cell > 0 ? h("p", { class: "hint" }, "Each small square is a host, below its switch. Its colour shows a pause of its port, or of the port that leads to it.") : "";
  return {
    drawing: h("div", { class: "fabric" }, h("div", { class: "drawing" }, svg), status),
    legend: h("div", {}, h("div", { class: "controls" }, h("label", {}, "Show ", highlight), h("label", {}, "Port ", bySelect), ...(pods.length > 0 ? [h("label", {}, "Fold or unfold ", unfold)] : [])), some, cells, legend(run)),
    // In half a page, the reader could not distinguish hundreds of hosts.
    isWide: parts.width > WIDE,
  };
}

interface Box {
  group: SVGGElement;
  fill: SVGRectElement;
  half: number;
  asCell: boolean;
}

/** The elements of the drawing, with the pods in `open` unfolded. */
function build(run: RunDocument, pods: number[], open: Set<number>, portName: (port: number) => string, suffix: string) {
  const { nodes, ports } = run.fabric;
  const isHost = (port: number) => nodes[ports[port]?.node ?? -1]?.kind === "host";
  const whole = (run.scenario as { topology?: unknown }).topology ?? {};
  const boxesOfPods = pods.length > 0 ? folded(run.fabric, pods, open) : undefined;
  const { width, height, places, names, step, scale, cell, room } = boxesOfPods ?? layout(run.fabric, whole);
  const isFolded = (node: number) => pods.length > 0 && (pods[node] ?? -1) >= 0 && !open.has(pods[node] ?? -1);
  const at = (node: number): Place => places[node] ?? { x: 0, y: 0 };
  // Half-links, parallel ones beside each other. Where hosts are cells, their links are not drawn.
  const parallels = new Map<string, number>();
  const between = (a: number, b: number) => `${Math.min(a, b)} ${Math.max(a, b)}`;
  const all = ports.flatMap((port, i) => (i < port.peer ? [[i, port.peer] as const] : []));
  const inside = (a: number, b: number) => {
    const [from, to] = [ports[a]?.node ?? 0, ports[b]?.node ?? 0];
    return isFolded(from) && isFolded(to);
  };
  const inFabric = all.filter(([a, b]) => (cell === 0 || (!isHost(a) && !isHost(b))) && !inside(a, b));
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
    // Those of a folded pod are one bundle.
    const apart = isFolded(from) || isFolded(to) ? 0.6 : 14;
    const bend = (number - (many - 1) / 2) * apart + (wraps ? 44 : 0);
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
    if (nodes[host]?.kind === "host" || isFolded(port.node)) beyond[i] = ends[i] = isFolded(port.node) ? { x: at(port.node).x + 28, y: at(port.node).y - 16 } : at(host);
  });

  const boxes: (Box | undefined)[] = nodes.map((node, i): Box | undefined => {
    if (isFolded(i)) return undefined;
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

  // Of each pod its box, or the bar above its devices.
  const folds = [...(boxesOfPods?.pods ?? [])].map(([pod, { x, y, width: wide, height: high }]) => {
    const its = nodes.filter((_, i) => pods[i] === pod);
    const isOpen = open.has(pod);
    const label = `pod ${pod}`;
    const rect = s("rect", { x: -wide / 2, y: -high / 2, width: wide, height: high, rx: 4 });
    const count = s("text", { y: 13, "text-anchor": "middle", class: "value" });
    const words = isOpen ? `▾ ${label}: ${its.length} devices. Click to fold.` : label;
    const group = s("g", { class: `pod${isOpen ? " open" : ""}`, "data-pod": pod, transform: `translate(${round(x)} ${round(y)})` }, rect, s("text", { y: isOpen ? 4 : -3, "text-anchor": "middle" }, words), s("title", {}, `${label}: ${its.length} devices. Click to ${isOpen ? "fold" : "unfold"}.`));
    if (!isOpen) group.append(count);
    return { pod, group, rect, count };
  });
  const children = [
    s("g", { class: "names" }, ...names.map(({ text, y }) => s("text", { x: 4, y: y + 4, style: `font-size:${Math.round(12 * scale)}px` }, text))),
    path,
    s("g", { class: pairs.length > MANY ? "many" : "" }, ...Object.values(lines)),
    halos,
    // Devices are above the ends of their links, so each can be clicked.
    s("g", {}, ...Object.values(hits)),
    s("g", {}, ...folds.map((fold) => fold.group)),
    s("g", {}, ...boxes.flatMap((box) => (box ? [box.group] : []))),
    marks,
    numbers,
  ];
  return { width, height, cell, lines, hits, ends, beyond, boxes, folds, halos, numbers, marks, path, children, pairs: pairs.length, ofPairs: inFabric.length };
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
