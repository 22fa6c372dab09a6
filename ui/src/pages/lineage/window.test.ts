import { describe, expect, it } from "vitest";
import { boxAround, nodeAt, windowOf, within } from "./window";

const NODES = [
  { id: "a", width: 100, height: 40 },
  { id: "b", width: 100, height: 40 },
];
const PLACES = new Map([
  ["a", { x: 0, y: 0 }],
  ["b", { x: 5000, y: 300 }],
]);

describe("the part of a large graph in view", () => {
  it("is empty at low zoom", () => {
    expect(windowOf([0, 0, 0.1], 1000, 800)).toBe("far");
    expect(within("far", NODES, PLACES).size).toBe(0);
  });
  it("has the nodes in view, and stays the same for small moves", () => {
    const view = windowOf([0, 0, 1], 1000, 800);
    expect([...within(view, NODES, PLACES)]).toEqual(["a"]);
    expect(windowOf([-3, -2, 1], 1000, 800)).toBe(view);
    expect([...within(windowOf([-4800, 0, 1], 1000, 800), NODES, PLACES)]).toEqual(["b"]);
  });
  it("has bounds, and nodes at points", () => {
    expect(boxAround(NODES, PLACES)).toEqual({ x: 0, y: 0, width: 5100, height: 340 });
    expect(boxAround([], PLACES)).toBeNull();
    expect(nodeAt({ x: 5050, y: 345 }, 10, NODES, PLACES)).toBe("b");
    expect(nodeAt({ x: 2000, y: 0 }, 10, NODES, PLACES)).toBeNull();
  });
});
