import { describe, expect, it } from "vitest";
import { daysAsked, momentAt, STEPS, stepOf } from "./time";

const NOW = Date.parse("2026-11-18T12:00:00.750Z");

describe("the time slider", () => {
  it("is at the step nearest to the time, or at an end", () => {
    expect(stepOf(NOW, NOW, 7)).toBe(STEPS);
    expect(stepOf(NOW - 3.5 * 86_400_000, NOW, 7)).toBe(STEPS / 2);
    expect(stepOf(Date.parse("2020-01-01"), NOW, 7)).toBe(0);
    expect(stepOf(Date.parse("2030-01-01"), NOW, 7)).toBe(STEPS);
    expect(stepOf(Date.parse("garbage"), NOW, 7)).toBe(STEPS);
  });
  it("has whole seconds, and now at its end", () => {
    expect(momentAt(STEPS, NOW, 7)).toBeNull();
    const moment = momentAt(100, NOW, 7) ?? 0;
    expect(moment % 1000).toBe(0);
    expect(stepOf(moment, NOW, 7)).toBe(100);
  });
  it("goes back by one of its choices for any address", () => {
    expect(["1", "90", "-5", "1e9", "x", null].map(daysAsked)).toEqual([1, 90, 7, 7, 7, 7]);
  });
});
