/** The versions behind a lot as a tree: each in full once, and as a reference after that. */
import type { Schemas } from "../../api/client";

type Version = Schemas["LotVersion"];

export interface Ancestry {
  readonly root: string;
  readonly below: (key: string) => readonly string[];
  readonly version: (key: string) => Version | undefined;
  /** Whether a key is a reference to a version elsewhere in the tree. */
  readonly isAgain: (key: string) => boolean;
}

const AGAIN = "again:";

/** Build the tree. A key is the id of a version; a reference has a key of its own and no children. */
export function ancestryOf(versions: readonly Version[]): Ancestry {
  const byId = new Map(versions.map((version) => [version.id, version]));
  const root = versions[0]?.id ?? "";
  const below = new Map<string, string[]>();
  const visited = new Set([root]);
  const queue = [root];
  for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
    const keys: string[] = [];
    for (const input of byId.get(id)?.inputs ?? []) {
      if (!byId.has(input)) continue;
      if (visited.has(input)) keys.push(`${AGAIN}${input}`);
      else {
        visited.add(input);
        keys.push(input);
        queue.push(input);
      }
    }
    below.set(id, keys);
  }
  const idOf = (key: string) => (key.startsWith(AGAIN) ? key.slice(AGAIN.length) : key);
  return {
    root,
    below: (key) => below.get(key) ?? [],
    version: (key) => byId.get(idOf(key)),
    isAgain: (key) => key.startsWith(AGAIN),
  };
}
