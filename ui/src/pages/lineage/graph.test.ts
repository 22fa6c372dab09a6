import { describe, expect, it } from "vitest";
import { type LineageNode, linksOf, matching, visible, wayThrough } from "./graph";

/** A chain of nodes: each feeds the next. */
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

describe("what is shown of a graph", () => {
  const graph = chain("a", "b", "c", "d");
  it("has every edge once", () => {
    expect(linksOf(graph)).toHaveLength(3);
  });
  it("hides what lies behind a collapsed node, and says how much", () => {
    const shown = visible(graph, "dataset:n:a", new Set(["dataset:n:b"]));
    expect(shown.nodes.map((node) => node.data.name)).toEqual(["a", "b"]);
    expect(shown.hidden.get("dataset:n:b")).toBe(1);
  });
  it("is all of it when nothing is collapsed", () => {
    expect(visible(graph, "dataset:n:c", new Set()).nodes).toHaveLength(4);
  });
  it("finds nodes by all words of a search", () => {
    expect([...matching(graph, "n/ C")]).toEqual(["dataset:n:c"]);
    expect(matching(graph, "").size).toBe(0);
  });
  it("follows the way through a node in both directions", () => {
    expect(wayThrough(linksOf(graph), "dataset:n:b").size).toBe(4);
  });
});
