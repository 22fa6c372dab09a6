/** The visible part of a graph: collapsed nodes, search results, paths. */
import type { Schemas } from "../../api/client";

export type LineageNode = Schemas["LineageGraph"]["graph"][number];

export interface Link {
  readonly from: string;
  readonly to: string;
}

export interface Visible {
  readonly nodes: readonly LineageNode[];
  readonly links: readonly Link[];
  /** The number of hidden neighbors by node. */
  readonly hidden: ReadonlyMap<string, number>;
}

/** List every edge between nodes of the graph once. */
export function linksOf(graph: readonly LineageNode[]): readonly Link[] {
  const ids = new Set(graph.map((node) => node.id));
  const links = new Map<string, Link>();
  for (const node of graph) {
    for (const edge of [...node.inEdges, ...node.outEdges]) {
      if (ids.has(edge.origin) && ids.has(edge.destination))
        links.set(`${edge.origin}\n${edge.destination}`, {
          from: edge.origin,
          to: edge.destination,
        });
    }
  }
  return [...links.values()];
}

/** List the neighbors of each node on one side. */
export function neighbors(
  links: readonly Link[],
  near: "from" | "to",
  far: "from" | "to",
): ReadonlyMap<string, readonly string[]> {
  const byNode = new Map<string, string[]>();
  for (const link of links) {
    const others = byNode.get(link[near]);
    if (others) others.push(link[far]);
    else byNode.set(link[near], [link[far]]);
  }
  return byNode;
}

/** Keep the nodes that are connected to the root without passing a collapsed node. */
export function visibleGraph(
  graph: readonly LineageNode[],
  root: string,
  collapsed: ReadonlySet<string>,
): Visible {
  const links = linksOf(graph);
  const [after, before] = [neighbors(links, "from", "to"), neighbors(links, "to", "from")];
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

/** Find the nodes whose name has every word. */
export function matching(nodes: readonly LineageNode[], text: string): ReadonlySet<string> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return new Set();
  return new Set(
    nodes
      .filter((node) =>
        words.every((word) =>
          `${node.data.namespace}/${node.data.name}`.toLowerCase().includes(word),
        ),
      )
      .map((node) => node.id),
  );
}

/** Find the nodes upstream and downstream of a node. */
export function pathThrough(links: readonly Link[], id: string): ReadonlySet<string> {
  const path = new Set([id]);
  for (const [near, far] of [
    ["from", "to"],
    ["to", "from"],
  ] as const) {
    const next = neighbors(links, near, far);
    const queue = [id];
    const visited = new Set(queue);
    for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
      for (const each of next.get(at) ?? []) {
        if (visited.has(each)) continue;
        visited.add(each);
        path.add(each);
        queue.push(each);
      }
    }
  }
  return path;
}
