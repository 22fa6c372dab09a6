import { expect, it } from "vitest";
import { isCounted } from "./counted";

const job = (ready: number, waiting = 0) => ({ ready, waiting });

it("is whole although much is ready or waiting, and not where jobs were left out", () => {
  expect(isCounted({ atLeast: false, work: [job(3)] })).toBe(true);
  expect(isCounted({ atLeast: true, work: [job(3), job(1000)] })).toBe(true);
  expect(isCounted({ atLeast: true, work: [job(3), job(0, 1000)] })).toBe(true);
  expect(isCounted({ atLeast: true, work: [job(3)] })).toBe(false);
  expect(isCounted({ atLeast: true, work: Array.from({ length: 500 }, () => job(1000)) })).toBe(false);
});
