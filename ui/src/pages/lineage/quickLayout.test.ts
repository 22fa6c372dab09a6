import { expect, it } from "vitest";
import { depths, quickLayout } from "./quickLayout";

it("puts each node right of its inputs", () => {
  const ids = ["a", "b", "c", "d"];
  const links = [
    { from: "a", to: "b" },
    { from: "b", to: "d" },
    { from: "a", to: "d" },
    { from: "c", to: "d" },
  ];
  const places = quickLayout(
    ids.map((id) => ({ id, width: 100, height: 40 })),
    links,
  );
  for (const { from, to } of links)
    expect(places.get(from)?.x).toBeLessThan(places.get(to)?.x ?? 0);
});

it("terminates on a cycle, and places every node", () => {
  const links = [
    { from: "a", to: "b" },
    { from: "b", to: "a" },
    { from: "b", to: "c" },
  ];
  expect(depths(["a", "b", "c"], links).size).toBe(3);
});

it("places two thousand nodes", () => {
  const ids = Array.from({ length: 2000 }, (_, at) => `n${at}`);
  const links = ids.slice(2).flatMap((id, at) => [
    { from: `n${at}`, to: id },
    { from: `n${Math.max(0, at - 40)}`, to: id },
  ]);
  expect(
    quickLayout(
      ids.map((id) => ({ id, width: 196, height: 46 })),
      links,
    ).size,
  ).toBe(2000);
});
