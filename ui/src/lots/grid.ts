/** The geometry of the grid of lots: pure functions of numbers. */
import { UNLISTED } from "../kit/states";
import { DAY_MS, type Interval, lengthOf, lotAt, perDay, startOf } from "./intervals";

export interface Range {
  readonly first: string;
  readonly last?: string;
  readonly count: number;
  readonly kind: string;
}

/** A grid of lots: a row for each day, or for each month when a lot is a day. */
export interface Grid {
  readonly interval: Interval;
  readonly start: number;
  readonly count: number;
  readonly columns: number;
  readonly rows: number;
  /** The label at the left of each row. */
  readonly labels: readonly string[];
  /** The start of each row. */
  readonly starts: readonly number[];
}

/** List the hours above a grid, as many as there is space for. */
export function hoursAbove(columns: number, cell: number, room: number): readonly number[] {
  const hour = (columns * cell) / 24;
  const every = [3, 6, 12].find((step) => step * hour >= room) ?? 24;
  return Array.from({ length: 24 / every }, (_, at) => at * every);
}

const WIDEST = 64;

/** Compute the width of a lot, so that a row fills its space; on a phone it is below a pixel. */
export function cellOf(room: number, columns: number): number {
  return Math.min(WIDEST, Math.max(0.25, room / columns));
}

export function gridOf(interval: Interval, first: string, count: number): Grid {
  const start = startOf(first) ?? 0;
  const end = start + count * lengthOf(interval);
  const starts: number[] = [];
  const isByMonth = interval === "PT24H";
  for (let at = rowStart(start, isByMonth); at < end; at = nextRow(at, isByMonth)) starts.push(at);
  const labels = starts.map((at) => new Date(at).toISOString().slice(0, isByMonth ? 7 : 10));
  return {
    interval,
    start,
    count,
    columns: isByMonth ? 31 : perDay(interval),
    rows: starts.length,
    labels,
    starts,
  };
}

function rowStart(at: number, isByMonth: boolean): number {
  if (!isByMonth) return at - (at % DAY_MS);
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

function nextRow(at: number, isByMonth: boolean): number {
  if (!isByMonth) return at + DAY_MS;
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** Find the row and column of the lot that starts at a time. */
export function positionOf(grid: Grid, at: number): readonly [number, number] {
  const length = lengthOf(grid.interval);
  if (grid.interval === "PT24H") {
    const date = new Date(at);
    const first = new Date(grid.starts[0] ?? at);
    const row =
      (date.getUTCFullYear() - first.getUTCFullYear()) * 12 +
      date.getUTCMonth() -
      first.getUTCMonth();
    return [row, date.getUTCDate() - 1];
  }
  return [Math.floor((at - (grid.starts[0] ?? at)) / DAY_MS), Math.floor((at % DAY_MS) / length)];
}

/** Find the lot at a row and column. */
export function lotAtPosition(grid: Grid, row: number, column: number): string | null {
  const from = grid.starts[row];
  if (from === undefined || column < 0 || column >= grid.columns) return null;
  const at = from + column * lengthOf(grid.interval);
  const next = grid.starts[row + 1];
  if (next !== undefined && at >= next) return null;
  if (at < grid.start || at >= grid.start + grid.count * lengthOf(grid.interval)) return null;
  return lotAt(grid.interval, at);
}

/** List the kind of every lot. A lot outside of the ranges is there, or unlisted after the last. */
export function kindsOf(
  grid: Grid,
  ranges: readonly Range[],
  kinds: readonly string[],
  isCut = false,
): Uint8Array {
  const found = new Uint8Array(grid.count);
  const length = lengthOf(grid.interval);
  for (const range of ranges) {
    const at = Math.round(((startOf(range.first) ?? grid.start) - grid.start) / length);
    found.fill(kinds.indexOf(range.kind) + 1, Math.max(0, at), Math.max(0, at + range.count));
  }
  const last = ranges.at(-1);
  if (isCut && last) {
    const at = Math.round(((startOf(last.first) ?? grid.start) - grid.start) / length);
    found.fill(kinds.indexOf(UNLISTED) + 1, at + last.count);
  }
  return found;
}

/** Find the newest lot of a kind before a lot, range by range; after the oldest, start over. */
export function lotOfKind(
  grid: Grid,
  kinds: Uint8Array,
  kind: number,
  before: string | null,
): string | null {
  const length = lengthOf(grid.interval);
  const from = before === null ? NaN : Math.round(((startOf(before) ?? NaN) - grid.start) / length);
  let at = Number.isNaN(from) ? kinds.length - 1 : from;
  while (!Number.isNaN(from) && kinds[at] === kind) at -= 1;
  const found = at < 0 ? -1 : kinds.lastIndexOf(kind, at);
  const place = found < 0 ? kinds.lastIndexOf(kind) : found;
  return place < 0 ? null : lotAt(grid.interval, grid.start + place * length);
}

/** Find the lot that a key moves to. */
export function stepFrom(grid: Grid, lot: string | null, key: string): string | null {
  const length = lengthOf(grid.interval);
  const last = grid.start + (grid.count - 1) * length;
  const at = lot === null ? last : (startOf(lot) ?? last);
  const row = grid.interval === "PT24H" ? 30 * DAY_MS : DAY_MS;
  const moves: Readonly<Record<string, number>> = {
    ArrowRight: at + length,
    ArrowLeft: at - length,
    ArrowDown: at + row,
    ArrowUp: at - row,
    Home: grid.start,
    End: last,
  };
  const to = moves[key];
  return to === undefined ? null : lotAt(grid.interval, Math.min(last, Math.max(grid.start, to)));
}
