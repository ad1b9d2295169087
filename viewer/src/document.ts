// The data of the page: crates/results/src/report/ makes it, and documents each part.

export interface Clock {
  bins: number;
  end_ps: number;
}

export interface Mark {
  place: string;
  bytes: number;
  of: number | null;
}

export interface Layer {
  name: string;
  nodes: number;
  buffer: Mark | null;
  headroom: Mark | null;
  queue: Mark | null;
}

export interface FabricNode {
  name: string;
  kind: "host" | "switch" | "relay";
  layer: number;
  buffer: number;
  buffer_peak: number;
}

export interface Port {
  name: string;
  node: number;
  peer: number;
  rate_bps: number;
  delay_ps: number;
  bytes: number;
  queue_peak: number;
  pause_frames: number;
}

export interface Fabric {
  topology: string;
  nodes: FabricNode[];
  ports: Port[];
  layers: Layer[];
}

// First bin, count, the pausing port, the congested port or -1.
export type Reason = [number, number, number, number];

export interface PortPauses {
  port: number;
  count: number;
  paused_ps: number;
  levels: string;
  reasons: Reason[];
}

export interface Pauses {
  count: number;
  roots_known: boolean;
  paused_ports: number;
  ports: PortPauses[];
}

export interface Cdf {
  class: string;
  flows: number;
  finished: number;
  fct_ps: number[];
  slowdown: number[];
}

export interface SizeGroup {
  from: number;
  to: number;
  flows: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
}

export interface FlowRow {
  id: number;
  src: number;
  dst: number;
  class: number;
  size: number;
  start_ps: number;
  fct_ps: number | null;
  /** From the start until the sender gave up. */
  failed_ps: number | null;
  slowdown: number | null;
  delivered: number;
  dropped: number;
}

export interface Flows {
  classes: string[];
  began: number;
  rows: FlowRow[];
  cdfs: Cdf[];
  by_size: SizeGroup[];
}

export interface Line {
  quantity: string;
  element: string;
  unit: string;
  values: (number | null)[];
}

export interface Filling {
  most: number;
  rows: [number, string][];
}

export interface Series {
  times_ps: number[];
  samples: number;
  lines: Line[];
  counts: Record<string, number>;
  nodes: Filling;
  ports: Filling;
}

export interface Deadlock {
  closed_ps: number;
  ended_ps: number | null;
  cycle: { port: number; bytes: number; flows: string[] }[];
}

export interface RankingRow {
  flow?: number;
  port?: string;
  cells: string[];
}

export interface Ranking {
  title: string;
  about: string;
  heads: string[];
  rows: RankingRow[];
}

export interface Group {
  name: string;
  flows: number;
  finished: number;
  slowdown: { mean: number; p50: number; p95: number; p99: number; p999: number } | null;
  goodput_bps: number;
  retransmitted: number;
  dropped: number;
}

export interface Note {
  level: string;
  text: string;
  details: string[];
  help: string | null;
}

export interface Verdict {
  property: string;
  state: "held" | "broken" | "not-promised";
  text: string;
}

export interface Banner {
  state: "loss" | "deadlock" | "livelock" | "partial" | "victims" | "slow" | "fine";
  text: string;
  at_ps: number | null;
}

export interface FlowStory {
  text: string;
  // Part, congested port or -1, time.
  steps: { leg: string; port: number; shares: [string, number, number][] }[];
  // Port, flow or -1, bytes, time.
  ahead: [number, number, number, number][];
}

/** A path through flows and computations. */
export interface JobPath {
  flows: number;
  compute_ps: number;
  moving_ps: number;
  waiting_ps: number | null;
  ports: { port: string; waiting_ps: number }[];
}

interface Late {
  host: string;
  behind_median_ps: number;
}

/** A job as summary.json has it. */
export interface JobSummary {
  class: string;
  start_ps: number;
  completed_ps: number | null;
  time_ps: number | null;
  iterations: { end_ps: number | null; time_ps: number | null; last: Late | null }[];
  operations: {
    name: string;
    hosts: number;
    size: number;
    count: number;
    finished: number;
    mean_ps: number | null;
    longest_ps: number | null;
    bus_bandwidth_bps: number | null;
    straggler: (Late & { delivered_ps: number; path: JobPath }) | null;
  }[];
  path: JobPath | null;
}

export interface JobHost {
  node: number;
  computing_ps: number;
  both_ps: number;
  moving_ps: number;
  waiting_ps: number;
  // Levels by bin.
  computing: string;
  both: string;
  moving: string;
}

export interface JobPage {
  summary: JobSummary;
  from_ps: number;
  until_ps: number;
  bins: number;
  all_hosts: number;
  hosts: JobHost[];
}

export interface RunDocument {
  kind: "run";
  name: string;
  headline: string;
  banner: Banner;
  complete: boolean;
  end_ps: number;
  facts: [string, string][];
  figures: [string, string][];
  verdicts: Verdict[];
  notes: Note[];
  sizes: Group[];
  classes: Group[];
  clock: Clock;
  fabric: Fabric;
  flows: Flows;
  jobs: JobPage[];
  series: Series;
  pauses: Pauses;
  deadlock: Deadlock | null;
  rankings: Ranking[];
  stories: { overview: { text: string; parts: [string, number][]; slowest: [number, string][] }; flows: Record<string, FlowStory>; ports: Record<string, string> } | null;
  left_out: string[];
  scenario: unknown;
}

export interface MetricValue {
  mean: number;
  range: [number, number] | null;
  text: string;
  ends: [string, string] | null;
}

export interface GridPoint {
  values: number[];
  runs: number;
  deadlocks: number;
  metrics: (MetricValue | null)[];
}

export interface GridDocument {
  kind: "grid";
  name: string;
  headline: string;
  complete: boolean;
  axes: { key: string; head: string; values: string[] }[];
  seeds: number[];
  metrics: { name: string; unit: string }[];
  points: GridPoint[];
  /** The folder of the runs' directories; null if they were not kept. */
  folder: string | null;
  /** Finished runs that are not listed. */
  left_out: number;
  runs: { name: string; point: number; seed: number; status: string; error: string | null; page: boolean }[];
  warnings: { text: string; runs: string[] }[];
  sizes: { groups: string[]; p99: (number | null)[][] } | null;
  scenario: unknown;
}

export interface PairDocument {
  kind: "pair";
  name: string;
  headline: string;
  runs: [RunDocument, RunDocument];
}

export interface PaperClaim {
  paper: string;
  id: string;
  own: boolean;
  statement: string;
  verdict: string;
  as_printed: boolean;
  measures: { which: string; paper: string; measured: string; verdict: string }[];
  remarks: string[];
}

export interface PaperExperiment {
  paper: string;
  id: string;
  title: string;
  section: string;
  note: string;
  runs: number;
  done: number;
  seeds: number;
  seconds: number | null;
  folder: string | null;
  // Name and SVG.
  figures: [string, string][];
  claims: PaperClaim[];
  chosen: [string, string][];
  fixed: [string, string][];
}

// crates/repro/src/site.rs makes its content.
export interface PapersDocument {
  kind: "papers";
  name: string;
  headline: string;
  site: {
    papers: { name: string; title: string; summary: string; other_source: boolean }[];
    verdicts: string[];
    experiments: PaperExperiment[];
    others: PaperClaim[];
  };
}

export type PageDocument = RunDocument | PairDocument | GridDocument | PapersDocument;

const LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/** By the code of a letter, its level. */
const LEVEL = new Float64Array(128);
for (let i = 0; i < LEVELS.length; i += 1) LEVEL[LEVELS.charCodeAt(i)] = i / 63;

/** The levels of a string of them, each 0 to 1. */
export function levels(text: string): number[] {
  const all = new Array<number>(text.length);
  for (let i = 0; i < text.length; i += 1) all[i] = LEVEL[text.charCodeAt(i)] ?? 0;
  return all;
}
