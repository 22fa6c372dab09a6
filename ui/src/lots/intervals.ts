/** Lot ids of intervals, such as `20230206PT5M286`: day, length, ordinal within the day. */

export type Interval = "PT5M" | "PT10M" | "PT15M" | "PT1H" | "PT24H";

const MINUTES: Readonly<Record<Interval, number>> = {
  PT5M: 5,
  PT10M: 10,
  PT15M: 15,
  PT1H: 60,
  PT24H: 1440,
};
const DIGITS: Readonly<Record<Interval, number>> = {
  PT5M: 3,
  PT10M: 3,
  PT15M: 3,
  PT1H: 2,
  PT24H: 0,
};
const SHAPE = /^(\d{4})(\d{2})(\d{2})(PT5M|PT10M|PT15M|PT1H|PT24H)(\d*)$/;
export const DAY_MS = 86_400_000;

export const lengthOf = (interval: Interval): number => MINUTES[interval] * 60_000;

/** The number of lots in a day. */
export const perDay = (interval: Interval): number => 1440 / MINUTES[interval];

/** Parse the start of the interval of a lot; null if the id is free. */
export function startOf(lot: string): number | null {
  const match = SHAPE.exec(lot);
  if (!match) return null;
  const [, year, month, day, interval, ordinal] = match;
  const at = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return at + Number(ordinal || 0) * lengthOf(interval as Interval);
}

/** Format the id of the lot that starts at a time. */
export function lotAt(interval: Interval, start: number): string {
  const day = new Date(start).toISOString().slice(0, 10).replaceAll("-", "");
  const ordinal = Math.floor((start % DAY_MS) / lengthOf(interval));
  const digits = DIGITS[interval];
  return `${day}${interval}${digits ? String(ordinal).padStart(digits, "0") : ""}`;
}

/** Format the time span of a lot; null if the id is free. */
export function spanOf(lot: string): string | null {
  const start = startOf(lot);
  const interval = SHAPE.exec(lot)?.[4] as Interval | undefined;
  if (start === null || !interval) return null;
  const end = new Date(start + lengthOf(interval)).toISOString();
  const begin = new Date(start).toISOString();
  return interval === "PT24H"
    ? `${begin.slice(0, 10)} UTC`
    : `${begin.slice(0, 10)} ${begin.slice(11, 16)}–${end.slice(11, 16)} UTC`;
}
