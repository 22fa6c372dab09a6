/** A first layout, at once: columns by depth, each ordered once by its neighbours on the left. */
import type { Link } from "./graph";
import type { Places, Sized } from "./layout";

const BETWEEN_COLUMNS = 44;
const BETWEEN_ROWS = 14;

/** How many steps each node is from where data comes in; a circle is cut where it is met first. */
export function depths(ids: readonly string[], links: readonly Link[]): ReadonlyMap<string, number> {
  const after = new Map<string, string[]>(ids.map((id) => [id, []]));
  const waits = new Map(ids.map((id) => [id, 0]));
  for (const { from, to } of links) {
    after.get(from)?.push(to);
    waits.set(to, (waits.get(to) ?? 0) + 1);
  }
  const found = new Map(ids.map((id) => [id, 0]));
  const done = new Set<string>();
  const queue = ids.filter((id) => waits.get(id) === 0);
  // Whoever is left when the queue is empty is in a circle, or behind one.
  for (const start of [null, ...ids]) {
    if (start !== null && !done.has(start)) queue.push(start);
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (done.has(id)) continue;
      done.add(id);
      for (const to of after.get(id) ?? []) {
        if (done.has(to)) continue;
        found.set(to, Math.max(found.get(to) ?? 0, (found.get(id) ?? 0) + 1));
        const left = (waits.get(to) ?? 1) - 1;
        waits.set(to, left);
        if (left === 0) queue.push(to);
      }
    }
  }
  return found;
}

export function quickLayout(nodes: readonly Sized[], links: readonly Link[]): Places {
  const depth = depths(nodes.map((node) => node.id), links);
  const before = new Map<string, string[]>();
  for (const { from, to } of links) before.set(to, [...(before.get(to) ?? []), from]);
  const columns: Sized[][] = [];
  for (const node of nodes) (columns[depth.get(node.id) ?? 0] ??= []).push(node);
  const places = new Map<string, { x: number; y: number }>();
  let x = 0;
  for (const column of columns) {
    if (!column) continue;
    const wish = new Map(
      column.map((node) => {
        const ys = (before.get(node.id) ?? []).flatMap((id) => places.get(id)?.y ?? []);
        return [node.id, ys.length ? ys.reduce((sum, y) => sum + y, 0) / ys.length : 0];
      }),
    );
    column.sort((a, b) => (wish.get(a.id) ?? 0) - (wish.get(b.id) ?? 0));
    let y = -column.reduce((sum, node) => sum + node.height + BETWEEN_ROWS, 0) / 2;
    for (const node of column) {
      places.set(node.id, { x, y });
      y += node.height + BETWEEN_ROWS;
    }
    x += Math.max(...column.map((node) => node.width)) + BETWEEN_COLUMNS;
  }
  return places;
}
