/** The part of a large graph in view: only its nodes become elements, the rest is drawn. */
import type { Places, Sized } from "./layout";

/** Below this zoom names cannot be read, and no node of a large graph needs an element. */
export const FAR = 0.6;
const STEP = 256;
const AROUND = 60;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Describe the view, rounded so that a small move does not change it; "far" at low zoom. */
export function windowOf(
  [x, y, zoom]: readonly [number, number, number],
  width: number,
  height: number,
): string {
  if (zoom < FAR || !width || !height) return "far";
  const down = (at: number) => Math.floor((at - AROUND) / STEP) * STEP;
  const up = (at: number) => Math.ceil((at + AROUND) / STEP) * STEP;
  return [down(-x / zoom), down(-y / zoom), up((width - x) / zoom), up((height - y) / zoom)].join(
    " ",
  );
}

/** Find the nodes that overlap a window. */
export function within(
  window: string,
  nodes: readonly Sized[],
  places: Places,
): ReadonlySet<string> {
  if (window === "far") return new Set();
  const [left = 0, top = 0, right = 0, bottom = 0] = window.split(" ").map(Number);
  return new Set(
    nodes
      .filter(({ id, width, height }) => {
        const at = places.get(id);
        return at && at.x < right && at.x + width > left && at.y < bottom && at.y + height > top;
      })
      .map((node) => node.id),
  );
}

/** Compute the smallest box around nodes; null if none is placed. */
export function boxAround(nodes: readonly Sized[], places: Places): Box | null {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { id, width, height } of nodes) {
    const at = places.get(id);
    if (!at) continue;
    left = Math.min(left, at.x);
    top = Math.min(top, at.y);
    right = Math.max(right, at.x + width);
    bottom = Math.max(bottom, at.y + height);
  }
  return left === Infinity ? null : { x: left, y: top, width: right - left, height: bottom - top };
}

/** Find the node at a point of the graph, within a distance. */
export function nodeAt(
  point: { x: number; y: number },
  near: number,
  nodes: readonly Sized[],
  places: Places,
): string | null {
  const node = nodes.find(({ id, width, height }) => {
    const at = places.get(id);
    return (
      at &&
      point.x >= at.x - near &&
      point.x <= at.x + width + near &&
      point.y >= at.y - near &&
      point.y <= at.y + height + near
    );
  });
  return node?.id ?? null;
}
