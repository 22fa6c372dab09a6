/** The graph as it is shown: what is hidden behind collapsed nodes, and what a search finds. */
import type { Schemas } from "../../api/client";

export type LineageNode = Schemas["LineageGraph"]["graph"][number];

export interface Link {
  readonly from: string;
  readonly to: string;
}

export interface Visible {
  readonly nodes: readonly LineageNode[];
  readonly links: readonly Link[];
  /** How many neighbours of a node are hidden. */
  readonly hidden: ReadonlyMap<string, number>;
}

/** Every edge once, between nodes that are there. */
export function linksOf(graph: readonly LineageNode[]): readonly Link[] {
  const known = new Set(graph.map((node) => node.id));
  const found = new Map<string, Link>();
  for (const node of graph) {
    for (const edge of [...node.inEdges, ...node.outEdges]) {
      if (known.has(edge.origin) && known.has(edge.destination)) found.set(`${edge.origin}\n${edge.destination}`, { from: edge.origin, to: edge.destination });
    }
  }
  return [...found.values()];
}

/** What each node is joined to on one side. */
export function neighbours(links: readonly Link[], near: "from" | "to", far: "from" | "to"): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const link of links) {
    const known = found.get(link[near]);
    if (known) known.push(link[far]);
    else found.set(link[near], [link[far]]);
  }
  return found;
}

/** What can be reached from the root without going through a collapsed node. */
export function visible(graph: readonly LineageNode[], root: string, collapsed: ReadonlySet<string>): Visible {
  const links = linksOf(graph);
  const [after, before] = [neighbours(links, "from", "to"), neighbours(links, "to", "from")];
  const around = (id: string) => [...(after.get(id) ?? []), ...(before.get(id) ?? [])];
  const begin = graph.some((node) => node.id === root) ? root : graph[0]?.id;
  const reached = new Set<string>(begin === undefined ? [] : [begin]);
  const queue = [...reached];
  for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
    if (collapsed.has(id) && id !== begin) continue;
    for (const next of around(id)) {
      if (reached.has(next)) continue;
      reached.add(next);
      queue.push(next);
    }
  }
  const hidden = new Map<string, number>();
  for (const id of reached) {
    const count = around(id).filter((next) => !reached.has(next)).length;
    if (count) hidden.set(id, count);
  }
  return {
    nodes: graph.filter((node) => reached.has(node.id)),
    links: links.filter(({ from, to }) => reached.has(from) && reached.has(to)),
    hidden,
  };
}

/** The nodes whose name holds every word. */
export function matching(nodes: readonly LineageNode[], text: string): ReadonlySet<string> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return new Set();
  return new Set(nodes.filter((node) => words.every((word) => `${node.data.namespace}/${node.data.name}`.toLowerCase().includes(word))).map((node) => node.id));
}

/** What lies before and after a node: the way that data takes through it. */
export function wayThrough(links: readonly Link[], id: string): ReadonlySet<string> {
  const found = new Set([id]);
  for (const [near, far] of [["from", "to"], ["to", "from"]] as const) {
    const next = neighbours(links, near, far);
    const queue = [id];
    const seen = new Set(queue);
    for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
      for (const each of next.get(at) ?? []) {
        if (seen.has(each)) continue;
        seen.add(each);
        found.add(each);
        queue.push(each);
      }
    }
  }
  return found;
}
