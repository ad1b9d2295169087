// Numbers as people read them, as crates/results/src/human.rs has them.

function scaled(value: number, digits: number, units: readonly string[]): string {
  let unit = 0;
  for (;;) {
    const whole = value < 10 ? 1 : value < 100 ? 2 : 3;
    let text = value.toFixed(Math.max(digits - whole, 0));
    if ((value >= 1000 || Number(text) >= 1000) && unit + 1 < units.length) {
      value /= 1000;
      unit += 1;
      continue;
    }
    if (text.includes(".")) {
      text = text.replace(/\.?0+$/, "");
    }
    return text + (units[unit] ?? "");
  }
}

const COUNTS = ["", "k", "M", "G", "T", "P", "E"] as const;

export function time(ps: number): string {
  return ps === 0 ? "0 s" : scaled(ps, 4, [" ps", " ns", " us", " ms", " s"]);
}

export function bytes(n: number): string {
  return scaled(n, 3, [" B", " kB", " MB", " GB", " TB", " PB", " EB"]);
}

export function rate(bps: number): string {
  return scaled(bps, 3, [" bps", " kbps", " Mbps", " Gbps", " Tbps", " Pbps"]);
}

export function count(n: number): string {
  return n < 10_000_000 && Number.isInteger(n) ? n.toLocaleString("en-US") : scaled(n, 3, COUNTS);
}

export function ratio(x: number): string {
  if (x < 9.995) return x.toFixed(2);
  if (x < 99.95) return x.toFixed(1);
  return x < 99_999.5 ? x.toFixed(0) : scaled(x, 3, COUNTS);
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 && share > 0 ? 1 : 0)}%`;
}

export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** A value in a unit of the series, or of a metric of a grid. */
export function inUnit(unit: string): (value: number) => string {
  switch (unit) {
    case "bit/s":
      return rate;
    case "byte":
      return bytes;
    case "ps":
      return time;
    case "ratio":
      return ratio;
    case "ppm":
      return (value) => percent(value / 1e6);
    default:
      return count;
  }
}
