/** A fast layout for large graphs: columns by depth, each ordered by its neighbors. */
import { type Link, neighbors } from "./graph";
import type { Places, Sized } from "./layout";

const BETWEEN_COLUMNS = 44;
const BETWEEN_ROWS = 14;
/** The number of passes over the columns; more change little. */
const SWEEPS = 4;

/** Compute the longest distance of each node from a source; a cycle is cut where it is first met. */
export function depths(
  ids: readonly string[],
  links: readonly Link[],
): ReadonlyMap<string, number> {
  const after = new Map<string, string[]>(ids.map((id) => [id, []]));
  const waits = new Map(ids.map((id) => [id, 0]));
  for (const { from, to } of links) {
    after.get(from)?.push(to);
    waits.set(to, (waits.get(to) ?? 0) + 1);
  }
  const depth = new Map(ids.map((id) => [id, 0]));
  const done = new Set<string>();
  const queue = ids.filter((id) => waits.get(id) === 0);
  // The nodes that remain when the queue is empty are in a cycle, or behind one.
  for (const start of [null, ...ids]) {
    if (start !== null && !done.has(start)) queue.push(start);
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (done.has(id)) continue;
      done.add(id);
      for (const to of after.get(id) ?? []) {
        if (done.has(to)) continue;
        depth.set(to, Math.max(depth.get(to) ?? 0, (depth.get(id) ?? 0) + 1));
        const left = (waits.get(to) ?? 1) - 1;
        waits.set(to, left);
        if (left === 0) queue.push(to);
      }
    }
  }
  return depth;
}

export function quickLayout(nodes: readonly Sized[], links: readonly Link[]): Places {
  const depth = depths(
    nodes.map((node) => node.id),
    links,
  );
  const columns: Sized[][] = [];
  for (const node of nodes) (columns[depth.get(node.id) ?? 0] ??= []).push(node);
  const filled = columns.filter((column) => column !== undefined);
  const ys = new Map<string, number>();
  for (const column of filled) stack(column, ys);
  const [before, after] = [neighbors(links, "to", "from"), neighbors(links, "from", "to")];
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isBack = sweep % 2 === 1;
    for (const column of isBack ? filled.toReversed() : filled)
      order(column, isBack ? after : before, ys);
  }
  const places = new Map<string, { x: number; y: number }>();
  let x = 0;
  for (const column of filled) {
    for (const node of column) places.set(node.id, { x, y: ys.get(node.id) ?? 0 });
    x += Math.max(...column.map((node) => node.width)) + BETWEEN_COLUMNS;
  }
  return places;
}

/** Order a column by the mean position of its neighbors; a node without neighbors stays. */
function order(
  column: Sized[],
  near: ReadonlyMap<string, readonly string[]>,
  ys: Map<string, number>,
): void {
  const wish = new Map(
    column.map(({ id }) => {
      const around = (near.get(id) ?? []).map((other) => ys.get(other) ?? 0);
      return [
        id,
        around.length ? around.reduce((sum, y) => sum + y, 0) / around.length : (ys.get(id) ?? 0),
      ];
    }),
  );
  column.sort((a, b) => (wish.get(a.id) ?? 0) - (wish.get(b.id) ?? 0));
  stack(column, ys);
}

/** Stack the nodes of a column around the middle. */
function stack(column: readonly Sized[], ys: Map<string, number>): void {
  let y = -column.reduce((sum, node) => sum + node.height + BETWEEN_ROWS, 0) / 2;
  for (const node of column) {
    ys.set(node.id, y);
    y += node.height + BETWEEN_ROWS;
  }
}
