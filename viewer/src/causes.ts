// Why ports are paused: the tree of a congested port, the path of a pause, and the cycle of a deadlock.

import { heat } from "./charts";
import type { RunDocument } from "./document";
import { h, s } from "./dom";
import * as format from "./format";
import type { Replay } from "./replay";
import type { Link } from "./stories";
import { short } from "./timeline";
import type { View } from "./view";

/** A paused port of a tree, and those that are paused because of it. */
interface Branch {
  port: number;
  share: number;
  branches: Branch[];
}

/** The ports that are paused for `root` in a bin, each below the one that it waits for. */
export function tree(run: RunDocument, replay: Replay, root: number, bin: number): Branch[] {
  const { ports } = run.fabric;
  const now = replay.at(bin);
  const left = new Set([...now].filter(([, paused]) => paused.root === root).map(([port]) => port));
  // A port waits for the device at the other end of its link, where the root is or a port that is paused for it.
  const into = (node: number): Branch[] => {
    const found = [...left].filter((port) => ports[ports[port]?.peer ?? -1]?.node === node);
    found.forEach((port) => left.delete(port));
    return found.map((port) => ({ port, share: now.get(port)?.share ?? 0, branches: into(ports[port]?.node ?? -1) }));
  };
  const branches = into(ports[root]?.node ?? -1);
  // Of pauses that outlast those between them and the root.
  return [...branches, ...[...left].map((port) => ({ port, share: now.get(port)?.share ?? 0, branches: [] }))];
}

export const depth = (branches: Branch[]): number => branches.reduce((most, branch) => Math.max(most, 1 + depth(branch.branches)), 0);
export const size = (branches: Branch[]): number => branches.reduce((sum, branch) => sum + 1 + size(branch.branches), 0);

/** A small picture of the share of each bin in which a port was paused. */
function spark(shares: number[], replay: Replay, view: View): SVGSVGElement {
  const width = 120;
  const picture = s("svg", { class: "spark", viewBox: `0 0 ${width} 14`, "aria-hidden": "true" });
  // Neighbours of one colour are one rectangle.
  const colours = shares.map((share) => (share > 0 ? heat(share) : ""));
  for (let from = 0, to = 0; from < colours.length; from = to) {
    while (to < colours.length && colours[to] === colours[from]) to += 1;
    if (colours[from]) picture.append(s("rect", { x: (from * width) / replay.bins, y: 1, width: ((to - from) * width) / replay.bins + 0.2, height: 12, style: `fill:${colours[from] ?? ""}` }));
  }
  const now = (replay.bin(view.time) * width) / replay.bins;
  picture.append(s("line", { class: "now", x1: now, x2: now, y1: 0, y2: 14 }));
  return picture;
}

/** The congested ports at the instant, and the tree of the chosen one; it follows the view. */
export function causes(run: RunDocument, replay: Replay, view: View, link: Link): HTMLElement {
  const { nodes, ports } = run.fabric;
  const name = (port: number) => {
    const it = ports[port];
    return it ? `${it.name} -> ${nodes[ports[it.peer]?.node ?? -1]?.name ?? ""}` : "";
  };
  const place = h("div", { class: "tree" });
  const item = (branch: Branch): HTMLElement =>
    h(
      "li",
      {},
      link({ port: branch.port }, name(branch.port)),
      " ",
      h("span", { class: "share" }, format.percent(branch.share)),
      " ",
      spark(replay.shares(branch.port) ?? [], replay, view) as unknown as HTMLElement,
      branch.branches.length > 0 ? h("ul", {}, ...branch.branches.map(item)) : null,
    );
  const show = () => {
    const bin = replay.bin(view.time);
    const now = replay.at(bin);
    const counts = new Map<number, number>();
    for (const { root } of now.values()) if (root >= 0) counts.set(root, (counts.get(root) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1]);
    const root = view.root >= 0 ? view.root : sorted[0]?.[0];
    if (root === undefined) {
      place.replaceChildren(h("p", { class: "none" }, `At ${format.time(view.time)} no port is paused because of a congested port.`));
      return;
    }
    const branches = tree(run, replay, root, bin);
    if (branches.length === 0) {
      place.replaceChildren(h("p", {}, `At ${format.time(view.time)} no port is paused because of `, link({ port: root }, name(root)), "."));
      return;
    }
    const others = sorted.filter(([other]) => other !== root).slice(0, 8);
    const buttons = others.flatMap(([other, n], i) => {
      const button = h("button", { type: "button", class: "link" }, name(other));
      button.addEventListener("click", () => view.setRoot(other));
      return [i > 0 ? ", " : "", button, ` (${n})`];
    });
    place.replaceChildren(
      h("p", {}, `At ${format.time(view.time)} `, link({ port: root }, name(root)), ` is congested: ${format.counted(size(branches), "port")} paused because of it, up to ${format.counted(depth(branches), "link")} away.`),
      h("ul", { class: "root-of-tree" }, h("li", {}, h("strong", {}, name(root)), branches.length > 0 ? h("ul", {}, ...branches.map(item)) : null)),
      others.length > 0 ? h("p", {}, "Other congested ports: ", ...buttons) : "",
      h("p", { class: "hint" }, "Each port waits for the one above it. The percentage and the bars are the share of a time slice in which the port was paused."),
    );
  };
  view.on("time", show);
  view.on("root", show);
  show();
  return place;
}

/** From a paused port to the congested port that it waits for; empty where the page does not know. */
export function chain(run: RunDocument, replay: Replay, port: number, bin: number): number[] {
  const now = replay.at(bin);
  const root = now.get(port)?.root ?? -1;
  if (root < 0) return [];
  const find = (branches: Branch[]): number[] | undefined => {
    for (const branch of branches) {
      if (branch.port === port) return [port];
      const below = find(branch.branches);
      if (below) return [...below, branch.port];
    }
    return undefined;
  };
  return [...(find(tree(run, replay, root, bin)) ?? [port]), root];
}

const BOX = { width: 150, height: 44 };

/** The cycle of a deadlock as a ring: each box is a queue, and waits for the next one. */
export function ring(run: RunDocument, link: Link): HTMLElement {
  const deadlock = run.deadlock;
  if (!deadlock) return h("p", {});
  const { cycle } = deadlock;
  const name = (port: number) => run.fabric.ports[port]?.name ?? "";
  const n = cycle.length;
  const [rx, ry] = [Math.max(150, n * 34), Math.max(90, n * 20)];
  const [cx, cy] = [rx + BOX.width / 2 + 6, ry + BOX.height / 2 + 6];
  const at = (i: number) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return { x: cx + rx * Math.cos(angle), y: cy + ry * Math.sin(angle) };
  };
  const picture = s("svg", { class: "ring", viewBox: `0 0 ${2 * cx} ${2 * cy}`, role: "img", "aria-label": `The cycle of the deadlock: ${cycle.map((held) => name(held.port)).join(" waits for ")} waits for the first.`, style: `max-width:${2 * cx}px;min-width:${cx}px` });
  picture.append(s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0L8 4L0 8z" }))));
  cycle.forEach((_, i) => {
    const [p, q] = [at(i), at((i + 1) % n)];
    const cut = (a: { x: number; y: number }, b: { x: number; y: number }) => {
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const t = Math.min(BOX.width / 2 / Math.max(Math.abs(dx), 1e-6), BOX.height / 2 / Math.max(Math.abs(dy), 1e-6), 0.45);
      return { x: a.x + dx * t, y: a.y + dy * t };
    };
    const [from, to] = [cut(p, q), cut(q, p)];
    picture.append(s("line", { class: "wait", x1: from.x, y1: from.y, x2: to.x, y2: to.y, "marker-end": "url(#arrow)" }));
  });
  cycle.forEach((held, i) => {
    const { x, y } = at(i);
    picture.append(
      s(
        "g",
        { transform: `translate(${Math.round(x)} ${Math.round(y)})` },
        s("rect", { x: -BOX.width / 2, y: -BOX.height / 2, width: BOX.width, height: BOX.height, rx: 5 }),
        s("text", { y: -4, "text-anchor": "middle" }, `${i + 1}  ${short(name(held.port), 18)}`),
        s("text", { y: 13, "text-anchor": "middle", class: "value" }, held.bytes > 0 ? `holds ${format.bytes(held.bytes)}` : "passes the pause on"),
      ),
    );
  });
  const items = cycle.map((held, i) => {
    const next = cycle[(i + 1) % n];
    const flows = held.flows.length > 0 ? ` of ${held.flows.slice(0, 2).join("; ")}${held.flows.length > 2 ? " and others" : ""}` : "";
    return h("li", {}, link({ port: held.port }, name(held.port)), held.bytes > 0 ? ` holds ${format.bytes(held.bytes)}${flows}. It waits for ` : " passes the pause on. It waits for ", link({ port: next?.port ?? 0 }, name(next?.port ?? 0)));
  });
  const ended = deadlock.ended_ps === null ? "It lasted until the end of the run." : `It lasted until ${format.time(deadlock.ended_ps)}.`;
  return h("div", { class: "deadlock" }, h("p", {}, `The cycle closed at ${format.time(deadlock.closed_ps)}. ${ended} Each queue waits for the next.`), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "cycle of the deadlock" }, picture), h("ol", {}, ...items));
}
