import { describe, expect, it } from "vitest";
import { newId, treeOf } from "./steps";

describe("the steps of a replay", () => {
  it("are a tree, each below the last one that it waits for", () => {
    const tree = treeOf([
      { number: 1, before: [] },
      { number: 2, before: [] },
      { number: 3, before: [2] },
      { number: 4, before: [1, 3] },
    ]);
    expect(tree.roots).toEqual(["1", "2"]);
    expect(tree.below("2")).toEqual(["3"]);
    expect(tree.below("3")).toEqual(["4"]);
    expect(tree.below("4")).toEqual([]);
  });
  it("have random ids", () => {
    expect(newId()).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(newId()).not.toBe(newId());
  });
});
