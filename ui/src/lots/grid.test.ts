import { describe, expect, it } from "vitest";
import {
  cellOf,
  gridOf,
  hoursAbove,
  kindsOf,
  lotOfKind,
  lotAtPosition,
  positionOf,
  stepFrom,
} from "./grid";
import { UNLISTED } from "../kit/states";
import { lotAt, spanOf, startOf } from "./intervals";

describe("lot ids", () => {
  it("survive a round trip", () => {
    for (const lot of [
      "20230206PT5M286",
      "20230206PT10M143",
      "20230206PT15M095",
      "20230206PT1H09",
      "20230206PT24H",
    ]) {
      const interval = lot.slice(8).match(/PT(5M|10M|15M|1H|24H)/)?.[0] as "PT5M";
      expect(lotAt(interval, startOf(lot) ?? 0)).toBe(lot);
    }
  });
  it("are formatted as a time span", () => {
    expect(spanOf("20230206PT1H09")).toBe("2023-02-06 09:00–10:00 UTC");
    expect(spanOf("north")).toBeNull();
  });
});

describe("a grid", () => {
  it("has a row for each day, and finds each lot at its position", () => {
    const grid = gridOf("PT1H", "20230206PT1H22", 30);
    expect(grid.rows).toBe(3);
    expect(grid.columns).toBe(24);
    expect(positionOf(grid, startOf("20230207PT1H05") ?? 0)).toEqual([1, 5]);
    expect(lotAtPosition(grid, 1, 5)).toBe("20230207PT1H05");
    expect(lotAtPosition(grid, 0, 21)).toBeNull();
    expect(lotAtPosition(grid, 2, 4)).toBeNull();
  });
  it("has a row for each month when a lot is a day", () => {
    const grid = gridOf("PT24H", "20230130PT24H", 40);
    expect(grid.labels).toEqual(["2023-01", "2023-02", "2023-03"]);
    expect(positionOf(grid, startOf("20230301PT24H") ?? 0)).toEqual([2, 0]);
    expect(lotAtPosition(grid, 1, 29)).toBeNull();
    expect(lotAtPosition(grid, 1, 27)).toBe("20230228PT24H");
  });
  it("derives the kind of every lot from ranges", () => {
    const grid = gridOf("PT5M", "20230206PT5M000", 6);
    const kinds = kindsOf(
      grid,
      [{ first: "20230206PT5M002", count: 2, kind: "held" }],
      ["missing", "held"],
    );
    expect([...kinds]).toEqual([0, 0, 2, 2, 0, 0]);
  });
  it("marks lots after the last listed range as unlisted", () => {
    const grid = gridOf("PT5M", "20230206PT5M000", 6);
    const ranges = [{ first: "20230206PT5M002", count: 2, kind: "held" }];
    expect([...kindsOf(grid, ranges, ["held", UNLISTED], true)]).toEqual([0, 0, 1, 1, 2, 2]);
  });
  it("fits a whole day into a phone, and fills a wide window", () => {
    expect(cellOf(260, 288) * 288).toBeCloseTo(260);
    expect(cellOf(1000, 288) * 288).toBeCloseTo(1000);
    expect(cellOf(5000, 24)).toBe(64);
  });
  it("labels as many hours as there is space for", () => {
    expect(hoursAbove(288, 3, 44)).toEqual([0, 3, 6, 9, 12, 15, 18, 21]);
    expect(hoursAbove(24, 11, 44)).toEqual([0, 6, 12, 18]);
    expect(hoursAbove(24, 2, 44)).toEqual([0]);
  });
  it("is navigated by keys, and stops at its ends", () => {
    const grid = gridOf("PT1H", "20230206PT1H22", 30);
    expect(stepFrom(grid, "20230206PT1H23", "ArrowRight")).toBe("20230207PT1H00");
    expect(stepFrom(grid, "20230206PT1H22", "ArrowLeft")).toBe("20230206PT1H22");
    expect(stepFrom(grid, null, "ArrowLeft")).toBe("20230208PT1H02");
  });
});

describe("the gaps in a grid", () => {
  const grid = gridOf("PT1H", "20230206PT1H00", 48);
  const ranges = [
    { first: "20230206PT1H03", count: 2, kind: "held" },
    { first: "20230207PT1H01", count: 3, kind: "held" },
    { first: "20230207PT1H10", count: 1, kind: "missing" },
  ];
  const kinds = kindsOf(grid, ranges, ["held", "missing", "empty"]);
  it("are found from the newest back, range by range, and then again", () => {
    const way: (string | null)[] = [null];
    for (let step = 0; step < 3; step += 1) way.push(lotOfKind(grid, kinds, 1, way.at(-1) ?? null));
    expect(way.slice(1)).toEqual(["20230207PT1H03", "20230206PT1H04", "20230207PT1H03"]);
    expect(lotOfKind(grid, kinds, 2, "20230206PT1H03")).toBe("20230207PT1H10");
    expect(lotOfKind(grid, kinds, 1, "north")).toBe("20230207PT1H03");
    expect(lotOfKind(grid, kinds, 3, null)).toBeNull();
  });
});
