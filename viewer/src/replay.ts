// The run at an instant: which ports are paused, for whom, and how full devices are.

import { levels, type RunDocument } from "./document";

export interface Paused {
  /** Share of the bin. */
  share: number;
  /** The port that asked for it, and the congested port; -1 where unknown. */
  cause: number;
  root: number;
}

export class Replay {
  readonly bins: number;
  private readonly paused = new Map<number, { shares: number[]; causes: Int32Array; roots: Int32Array }>();
  private readonly nodes = new Map<number, number[]>();
  private readonly queues = new Map<number, number[]>();

  constructor(private readonly run: RunDocument) {
    this.bins = run.clock.bins;
    for (const port of run.pauses.ports) {
      const causes = new Int32Array(this.bins).fill(-1);
      const roots = new Int32Array(this.bins).fill(-1);
      for (const [from, count, cause, root] of port.reasons) {
        causes.fill(cause, from, from + count);
        roots.fill(root, from, from + count);
      }
      this.paused.set(port.port, { shares: levels(port.levels), causes, roots });
    }
    for (const [node, text] of run.series.nodes.rows) this.nodes.set(node, levels(text));
    for (const [port, text] of run.series.ports.rows) this.queues.set(port, levels(text));
  }

  /** Where a bin begins, in picoseconds. */
  begin(bin: number): number {
    return (this.run.clock.end_ps * bin) / this.bins;
  }

  /** The bin of an instant. */
  bin(ps: number): number {
    const { end_ps } = this.run.clock;
    return end_ps === 0 ? 0 : Math.min(this.bins - 1, Math.floor((ps * this.bins) / end_ps));
  }

  /** The first bin in which something is paused. */
  first(): number {
    for (let bin = 0; bin < this.bins; bin += 1) if (this.at(bin).size > 0) return bin;
    return 0;
  }

  /** The ports that are paused in a bin. */
  at(bin: number): Map<number, Paused> {
    const all = new Map<number, Paused>();
    for (const [port, { shares, causes, roots }] of this.paused) {
      const share = shares[bin] ?? 0;
      if (share > 0) all.set(port, { share, cause: causes[bin] ?? -1, root: roots[bin] ?? -1 });
    }
    return all;
  }

  shares(port: number): number[] | undefined {
    return this.paused.get(port)?.shares;
  }

  /** What a device holds in a bin, as a share of the most that any of them ever does. */
  filled(node: number, bin: number): number | undefined {
    return this.nodes.get(node)?.[bin];
  }

  /** The sum of that over all devices. */
  held(bin: number): number {
    let sum = 0;
    for (const shares of this.nodes.values()) sum += shares[bin] ?? 0;
    return sum;
  }

  /** What the queues of a port hold that was measured, as a share of the most that any does. */
  queued(port: number, bin: number): number | undefined {
    return this.queues.get(port)?.[bin];
  }

  /** Whether the deadlock stands in a bin. */
  deadlocked(bin: number): boolean {
    const deadlock = this.run.deadlock;
    if (!deadlock) return false;
    return bin >= this.bin(deadlock.closed_ps) && (deadlock.ended_ps === null || this.begin(bin) < deadlock.ended_ps);
  }

  /** Congested ports, the one for which most ports were paused longest first. */
  roots(): number[] {
    const sums = new Map<number, number>();
    for (const { shares, roots } of this.paused.values()) {
      shares.forEach((share, bin) => {
        const root = roots[bin] ?? -1;
        if (root >= 0) sums.set(root, (sums.get(root) ?? 0) + share);
      });
    }
    return [...sums].sort((a, b) => b[1] - a[1]).map(([root]) => root);
  }
}
