import { describe, expect, it } from "vitest";
import { type LineageNode, linksOf, matching, visibleGraph, pathThrough } from "./graph";

/** Build a chain of nodes. */
function chain(...names: string[]): LineageNode[] {
  const id = (name: string) => `dataset:n:${name}`;
  return names.map((name, at) => {
    const before = names[at - 1];
    const after = names[at + 1];
    return {
      type: "DATASET",
      id: id(name),
      data: { namespace: "n", name },
      inEdges: before === undefined ? [] : [{ origin: id(before), destination: id(name) }],
      outEdges: after === undefined ? [] : [{ origin: id(name), destination: id(after) }],
    } as unknown as LineageNode;
  });
}

describe("the visible part of a graph", () => {
  const graph = chain("a", "b", "c", "d");
  it("has every edge once", () => {
    expect(linksOf(graph)).toHaveLength(3);
  });
  it("hides the nodes behind a collapsed node, and counts them", () => {
    const part = visibleGraph(graph, "dataset:n:a", new Set(["dataset:n:b"]));
    expect(part.nodes.map((node) => node.data.name)).toEqual(["a", "b"]);
    expect(part.hidden.get("dataset:n:b")).toBe(1);
  });
  it("is the whole graph when no node is collapsed", () => {
    expect(visibleGraph(graph, "dataset:n:c", new Set()).nodes).toHaveLength(4);
  });
  it("is searched by all words", () => {
    expect([...matching(graph, "n/ C")]).toEqual(["dataset:n:c"]);
    expect(matching(graph, "").size).toBe(0);
  });
  it("has a path through a node in both directions", () => {
    expect(pathThrough(linksOf(graph), "dataset:n:b").size).toBe(4);
  });
});
