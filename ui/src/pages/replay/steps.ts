/** The tree of the steps of a replay, and ids of new replays. */

interface Numbered {
  readonly number: number;
  readonly before: readonly number[];
}

export interface StepTree {
  readonly roots: readonly string[];
  readonly below: (key: string) => readonly string[];
}

const NONE: readonly string[] = [];

/** Build the tree: each step is below the last one that it waits for. */
export function treeOf(steps: readonly Numbered[]): StepTree {
  const roots: string[] = [];
  const below = new Map<string, string[]>();
  for (const step of steps) {
    const key = String(step.number);
    if (step.before.length === 0) {
      roots.push(key);
      continue;
    }
    const parent = String(Math.max(...step.before));
    const children = below.get(parent);
    if (children) children.push(key);
    else below.set(parent, [key]);
  }
  return { roots, below: (key) => below.get(key) ?? NONE };
}

/** Create a random id. Browsers offer `crypto.randomUUID` only to pages over TLS. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join("-");
}
