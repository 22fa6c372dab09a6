import { expect, it } from "vitest";
import { isComplete } from "./completeness";

const job = (ready: number, waiting = 0) => ({ ready, waiting });

it("has every problem unless jobs were left out", () => {
  expect(isComplete({ atLeast: false, work: [job(3)] })).toBe(true);
  expect(isComplete({ atLeast: true, work: [job(3), job(1000)] })).toBe(true);
  expect(isComplete({ atLeast: true, work: [job(3), job(0, 1000)] })).toBe(true);
  expect(isComplete({ atLeast: true, work: [job(3)] })).toBe(false);
  expect(isComplete({ atLeast: true, work: Array.from({ length: 500 }, () => job(1000)) })).toBe(
    false,
  );
});
