/** Numbers, sizes and durations as text. */
const NUMBER = new Intl.NumberFormat("en");
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];
const SPANS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

export const count = (value: number): string => NUMBER.format(value);

/** "1 lot", "3 lots". */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** Format a size in the largest unit that leaves a number above one. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // A value that rounds up to 1000 belongs to the next unit.
  while (Math.abs(value) >= (unit === 0 ? 1000 : 999.5) && unit < SIZES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || Math.abs(value) >= 99.95 ? Math.round(value) : value.toFixed(1)} ${SIZES[unit] ?? ""}`;
}

/** Format seconds in the two largest units: `3 h 20 min`. */
export function span(seconds: number): string {
  const whole = Math.abs(seconds);
  if (whole < 1) return `${Math.round(whole * 1000)} ms`;
  if (whole < 10) return `${whole.toFixed(1)} s`;
  const at = SPANS.findIndex(([unit]) => whole >= unit);
  const [unit, name] = SPANS[at] ?? [1, "s"];
  const rest = SPANS[at + 1];
  const first = Math.floor(whole / unit);
  const second = rest ? Math.floor((whole - first * unit) / rest[0]) : 0;
  return second && rest && first < 10
    ? `${first} ${name} ${second} ${rest[1]}`
    : `${first} ${name}`;
}

/** Format the distance to a time in the past or the future. */
export function ago(at: number, now: number): string {
  const seconds = Math.round((now - at) / 1000);
  const whole = Math.abs(seconds);
  if (whole < 5) return "now";
  const [unit, name] = SPANS.find(([least]) => whole >= least) ?? [1, "s"];
  const distance = `${Math.floor(whole / unit)} ${name}`;
  return seconds > 0 ? `${distance} ago` : `in ${distance}`;
}

/** Format a full time in UTC. */
export function utcTime(at: number): string {
  return new Date(at)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC")
    .replace("Z", " UTC");
}

/** Format a full time in a time zone; null in UTC. */
export function localTime(
  at: number,
  zone = Intl.DateTimeFormat().resolvedOptions().timeZone,
): string | null {
  if (zone === "UTC") return null;
  // The Swedish locale writes dates as ISO 8601 does.
  return `${new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone: zone }).format(at)} ${zone.replaceAll("_", " ")}`;
}

/** Shorten a long name in its middle, where names differ least. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.4);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

/** Shorten a digest to a beginning that identifies it. */
export function shortDigest(digest: string): string {
  return digest.length > 24 ? `${digest.slice(0, 24)}…` : digest;
}
