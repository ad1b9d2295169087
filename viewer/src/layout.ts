// Where the devices of a fabric are drawn.

import type { Fabric } from "./document";

export interface Place {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  places: Place[];
  /** Of each layer, where its name goes; none where devices are not drawn in layers. */
  names: { text: string; y: number }[];
  /** Room that a host has. */
  step: number;
  /** Width of the square of a host; 0 where hosts are circles with links. */
  cell: number;
  /** By device, how much room its row gives it; nothing where that is no limit. */
  room: number[];
  /** By how much switches and names are drawn larger, as wide fabrics are shown smaller. */
  scale: number;
}

/** Hosts beyond which each is a square below its switch. */
const CELLS = 64;
const LEFT = 96;
const ROW = 118;

/** Positions of the devices of each layer. */
function byLayer(fabric: Fabric): number[][] {
  const layers: number[][] = fabric.layers.map(() => []);
  fabric.nodes.forEach((node, i) => layers[node.layer]?.push(i));
  return layers;
}

/** Whether switches of one layer are linked to each other. */
function meshed(fabric: Fabric): boolean {
  return fabric.ports.some((port) => {
    const a = fabric.nodes[port.node];
    const b = fabric.nodes[fabric.ports[port.peer]?.node ?? -1];
    return a !== undefined && b !== undefined && a.kind !== "host" && a.layer === b.layer;
  });
}

/** By device, its pod: what hangs together below the highest layer of a fabric with several layers of switches.
 *  -1 for a device of the highest layer; empty where pods are no help. */
export function podsOf(fabric: Fabric): number[] {
  const top = fabric.layers.length - 1;
  if (top < 3 || fabric.layers[0]?.name !== "hosts" || (fabric.layers[0]?.nodes ?? 0) <= CELLS) return [];
  const near: number[][] = fabric.nodes.map(() => []);
  for (const port of fabric.ports) near[port.node]?.push(fabric.ports[port.peer]?.node ?? port.node);
  const pods = fabric.nodes.map(() => -1);
  let count = 0;
  fabric.nodes.forEach((node, i) => {
    if (node.layer === top || (pods[i] ?? 0) >= 0) return;
    const open = [i];
    pods[i] = count;
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const next of near[at] ?? []) {
        if (fabric.nodes[next]?.layer === top || (pods[next] ?? 0) >= 0) continue;
        pods[next] = count;
        open.push(next);
      }
    }
    count += 1;
  });
  return count >= 2 && count <= 256 ? pods : [];
}

/** A folded pod: where it is drawn, and its size. */
export interface Pod {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The highest layer, then the folded pods as boxes, then the devices of the pods in `open`. Devices of folded pods
 *  are in the middle of their box. */
export function folded(fabric: Fabric, pods: number[], open: Set<number>): Layout & { pods: Map<number, Pod> } {
  const top = fabric.layers.length - 1;
  const count = Math.max(...pods) + 1;
  const room = 1300;
  const left = LEFT;
  const places: Place[] = fabric.nodes.map(() => ({ x: left, y: 0 }));
  const free: number[] = [];
  const names: Layout["names"] = [{ text: fabric.layers[top]?.name ?? "", y: 40 }];
  const first = fabric.nodes.flatMap((node, i) => (node.layer === top ? [i] : []));
  let y = 40;
  const perRow = Math.min(first.length, 64);
  for (let from = 0; from < first.length; from += perRow) {
    const row = first.slice(from, from + perRow);
    row.forEach((node, k) => {
      places[node] = { x: left + ((k + 0.5) * room) / perRow, y };
      free[node] = room / perRow;
    });
    y += 26;
  }
  const boxes = new Map<number, Pod>();
  const closed = Array.from({ length: count }, (_, i) => i).filter((pod) => !open.has(pod));
  y += 90;
  if (closed.length > 0) names.push({ text: "pods", y });
  const inRow = Math.max(1, Math.min(closed.length, 17));
  closed.forEach((pod, k) => {
    const x = left + ((k % inRow) + 0.5) * (room / inRow);
    boxes.set(pod, { x, y: y + Math.floor(k / inRow) * 54, width: Math.min(120, room / inRow - 6), height: 44 });
  });
  fabric.nodes.forEach((_, i) => {
    const box = boxes.get(pods[i] ?? -1);
    if (box) places[i] = { x: box.x, y: box.y };
  });
  y += Math.ceil(closed.length / inRow) * 54 + 10;
  let cell = 10;
  for (const pod of open) {
    const its = fabric.nodes.flatMap((_, i) => (pods[i] === pod ? [i] : []));
    const part = partOf(fabric, its);
    const inner = cells(part, byLayer(part), room);
    its.forEach((node, k) => {
      const place = inner.places[k];
      if (place) places[node] = { x: place.x - inner.left + left, y: y + place.y };
      if (inner.room[k] !== undefined) free[node] = inner.room[k] ?? 0;
    });
    names.push(...inner.names.map((name) => ({ text: name.text, y: y + name.y })));
    boxes.set(pod, { x: left + room / 2, y: y + 14, width: room, height: 20 });
    y += inner.height;
    cell = inner.cell;
  }
  return { width: left + room, height: y + 20, places, names, scale: 1, step: cell, cell, room: free, pods: boxes };
}

/** Some devices of a fabric, and the links between them. */
function partOf(fabric: Fabric, its: number[]): Fabric {
  const number = new Map(its.map((node, k) => [node, k]));
  const kept = fabric.ports.flatMap((port, i) => (number.has(port.node) && number.has(fabric.ports[port.peer]?.node ?? -1) ? [i] : []));
  const at = new Map(kept.map((port, k) => [port, k]));
  return {
    ...fabric,
    nodes: its.map((node) => fabric.nodes[node]).filter((node) => node !== undefined),
    ports: kept.flatMap((i) => {
      const port = fabric.ports[i];
      return port ? [{ ...port, node: number.get(port.node) ?? 0, peer: at.get(port.peer) ?? 0 }] : [];
    }),
    layers: fabric.layers.slice(0, -1),
  };
}

export function layout(fabric: Fabric, topology: unknown): Layout {
  const shape = topology as { kind?: string; width?: number; height?: number };
  if (shape.kind === "torus-2d" && shape.width && shape.height) return torus(fabric, shape.width, shape.height);
  const inRows = ["dci", "line", "dumbbell"].includes(shape.kind ?? "") || fabric.nodes.some((node) => node.kind === "relay");
  return meshed(fabric) && !inRows ? circle(fabric) : rows(fabric, shape.kind ?? "");
}

/** Layers above each other, hosts at the bottom; of networks whose hosts relay, hosts between
 *  the first layer of switches and the others. */
function rows(fabric: Fabric, kind: string): Layout {
  const layers = byLayer(fabric);
  if ((layers[0]?.length ?? 0) > CELLS && fabric.layers[0]?.name === "hosts") return cells(fabric, layers);
  const order = layers.map((_, i) => i);
  if (["ndc", "rail-only", "rail-optimized"].includes(kind) && layers.length > 2) order.splice(0, 2, 1, 0);
  // Switches have room for their names, within limits.
  const letters = Math.max(0, ...fabric.nodes.map((node) => (node.kind === "host" ? 0 : node.name.length)));
  const switches = Math.max(3, Math.min(5, (letters * 7 + 24) / 26));
  const widest = Math.max(...layers.map((nodes, i) => nodes.length * (fabric.layers[i]?.name === "hosts" ? 1 : switches)), 1);
  const hosts = layers[0]?.length ?? 1;
  const step = Math.max(9, Math.min(44, 1300 / Math.max(hosts, widest)));
  const room = Math.max(640, Math.max(hosts * step, widest * step));
  const scale = Math.max(1, Math.min(1.7, room / 800));
  const left = LEFT * scale;
  const width = left + room;
  const places: Place[] = fabric.nodes.map(() => ({ x: 0, y: 0 }));
  const free: number[] = [];
  const names = order.map((layer, row) => {
    const y = ((order.length - row - 1) * ROW + 46) * scale;
    const nodes = layers[layer] ?? [];
    nodes.forEach((node, i) => {
      places[node] = { x: left + ((i + 0.5) * room) / nodes.length, y };
      free[node] = room / nodes.length;
    });
    return { text: fabric.layers[layer]?.name ?? "", y };
  });
  return { width, height: (order.length * ROW - 20) * scale, places, names, scale, step: room / Math.max(hosts, 1), cell: 0, room: free };
}

/** Hosts as squares below their switch, in as many columns as the width allows. */
function cells(fabric: Fabric, layers: number[][], widest = 4000): Layout & { left: number } {
  const at = homes(fabric);
  const above = layers.slice(1);
  // Switches with hosts, in their order; those of one layer are beside each other.
  const groups = above.flat().filter((node) => at.has(node));
  const most = Math.max(...groups.map((node) => at.get(node)?.length ?? 0), 1);
  const free = 1300 / Math.max(groups.length, 1) - 6;
  // As large as the width allows, and rather wide than high.
  const square = Math.ceil(Math.sqrt(most * 2));
  const cell = Math.max(10, Math.min(18, Math.floor(free / Math.min(most, square))));
  const columns = Math.max(2, Math.min(most, square, Math.floor(free / cell)));
  const wide = columns * cell + 6;
  // Of thousands of switches, several rows.
  const inRow = Math.max(1, Math.min(groups.length, Math.floor(widest / wide)));
  const room = Math.min(widest, Math.max(640, inRow * wide, ...above.map((nodes) => nodes.length * 14)));
  const scale = Math.max(1, Math.min(1.7, room / 1100));
  const left = LEFT * scale;
  const places: Place[] = fabric.nodes.map(() => ({ x: 0, y: 0 }));
  const widths: number[] = [];
  const names: Layout["names"] = [];
  let y = 46;
  for (const [i, nodes] of [...above.entries()].reverse()) {
    const hasHosts = nodes.some((node) => at.has(node));
    const perRow = hasHosts ? inRow : Math.max(1, Math.min(nodes.length, Math.floor(room / 14)));
    names.push({ text: fabric.layers[i + 1]?.name ?? "", y });
    for (let from = 0; from < nodes.length; from += perRow) {
      const row = nodes.slice(from, from + perRow);
      const each = room / Math.min(perRow, nodes.length);
      let tallest = 0;
      row.forEach((node, k) => {
        const x = left + (k + 0.5) * each;
        places[node] = { x, y };
        widths[node] = each;
        const hosts = at.get(node) ?? [];
        hosts.forEach((host, n) => {
          places[host] = { x: x + ((n % columns) - (columns - 1) / 2) * cell, y: y + 30 * scale + Math.floor(n / columns) * cell };
        });
        tallest = Math.max(tallest, Math.ceil(hosts.length / columns));
      });
      y += hasHosts ? 50 * scale + tallest * cell : nodes.length > perRow ? 34 * scale : ROW * scale;
    }
  }
  return { width: left + room, height: y + 10, places, names, scale, step: cell, cell, room: widths, left };
}

/** The switch that each host is at. */
function homes(fabric: Fabric): Map<number, number[]> {
  const at = new Map<number, number[]>();
  const seen = new Set<number>();
  for (const port of fabric.ports) {
    const peer = fabric.ports[port.peer];
    if (!peer || fabric.nodes[port.node]?.kind !== "host" || seen.has(port.node)) continue;
    seen.add(port.node);
    at.set(peer.node, [...(at.get(peer.node) ?? []), port.node]);
  }
  return at;
}

function circle(fabric: Fabric): Layout {
  const switches = fabric.nodes.flatMap((node, i) => (node.kind === "host" ? [] : [i]));
  const at = homes(fabric);
  const most = Math.max(...[...at.values()].map((hosts) => hosts.length), 1);
  const radius = Math.max(130, (switches.length * Math.max(most * 16, 60)) / (2 * Math.PI));
  const middle = radius + 90;
  const places: Place[] = fabric.nodes.map(() => ({ x: middle, y: middle }));
  const on = (angle: number, r: number) => ({ x: middle + r * Math.sin(angle), y: middle - r * Math.cos(angle) });
  const turn = (2 * Math.PI) / Math.max(switches.length, 1);
  switches.forEach((node, i) => {
    places[node] = on(i * turn, radius);
    const hosts = at.get(node) ?? [];
    hosts.forEach((host, k) => {
      places[host] = on(i * turn + ((k + 0.5) / hosts.length - 0.5) * turn * 0.8, radius + 58);
    });
  });
  return { width: 2 * middle, height: 2 * middle, places, names: [], step: 24, scale: 1, cell: 0, room: [] };
}

function torus(fabric: Fabric, columns: number, rows: number): Layout {
  const cell = 108;
  const switches = fabric.nodes.flatMap((node, i) => (node.kind === "host" ? [] : [i]));
  const at = homes(fabric);
  const places: Place[] = fabric.nodes.map(() => ({ x: 0, y: 0 }));
  switches.forEach((node, i) => {
    const home = { x: 70 + (i % columns) * cell, y: 40 + Math.floor(i / columns) * cell };
    places[node] = home;
    const hosts = at.get(node) ?? [];
    hosts.forEach((host, k) => {
      const angle = Math.PI * (0.15 + (0.2 * (k + 0.5)) / hosts.length);
      places[host] = { x: home.x + 50 * Math.cos(angle), y: home.y + 50 * Math.sin(angle) };
    });
  });
  return { width: 70 + columns * cell, height: 50 + rows * cell, places, names: [], step: 20, scale: 1, cell: 0, room: [] };
}
