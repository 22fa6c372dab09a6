/** The layout of a graph by ELK, in a worker that loads with the first graph. */
import ELK, { type ELK as Layouter, type ElkNode } from "elkjs/lib/elk-api";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";
import type { Link } from "./graph";

export interface Sized {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export type Places = ReadonlyMap<string, { readonly x: number; readonly y: number }>;

/** Above this number of nodes ELK takes seconds, and a browser cannot hold an element for each. */
export const MANY = 400;
let layouter: Layouter | null = null;

function theLayouter(): Layouter {
  layouter ??= new ELK({ workerFactory: () => new Worker(workerUrl) });
  return layouter;
}

/** Lay out a graph from left to right. */
export async function layOut(nodes: readonly Sized[], links: readonly Link[]): Promise<Places> {
  const options = {
    "elk.algorithm": "layered",
    "elk.direction": "RIGHT",
    "elk.layered.spacing.nodeNodeBetweenLayers": "32",
    "elk.spacing.nodeNode": "14",
    "elk.edgeRouting": "POLYLINE",
    "elk.separateConnectedComponents": "true",
    "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
    "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  };
  const graph: ElkNode = {
    id: "root",
    layoutOptions: options,
    children: nodes.map(({ id, width, height }) => ({ id, width, height })),
    edges: links.map(({ from, to }, at) => ({ id: `e${at}`, sources: [from], targets: [to] })),
  };
  const done = await theLayouter().layout(graph);
  return new Map(
    (done.children ?? []).map((child) => [child.id, { x: child.x ?? 0, y: child.y ?? 0 }]),
  );
}
