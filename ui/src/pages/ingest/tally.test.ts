import { describe, expect, it } from "vitest";
import { openJobs, rate, sharesOf, stays } from "./tally";

const TALLY = {
  completed: { jobs: 7, bytes: 70 },
  downloading: { jobs: 2, bytes: 20 },
  pending: { jobs: 1, bytes: 0 },
  failed: { jobs: 3, bytes: 9 },
};

describe("a tally of ingest jobs", () => {
  it("counts the jobs that have not ended", () => {
    expect(openJobs(TALLY)).toBe(3);
    expect(sharesOf(TALLY).map((part) => part.value)).toEqual([7, 2, 1, 0, 3]);
  });
  it("has rates in the unit that leaves a number above one", () => {
    expect(rate(30, 10)).toEqual([3, "s"]);
    expect(rate(3, 60)).toEqual([3, "min"]);
    expect(rate(2, 3600)).toEqual([2, "h"]);
    expect(rate(0, 60)).toBeNull();
  });
  it("lists how long a job stayed in each state", () => {
    const history = [
      { status: "pending" as const, at: "2026-11-15T10:00:00Z" },
      { status: "estimating" as const, at: "2026-11-15T10:00:04Z" },
    ];
    expect(stays(history).map((stay) => stay.seconds)).toEqual([4, undefined]);
  });
});
