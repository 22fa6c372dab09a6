import { expect, it } from "vitest";
import { leastOf, ordered } from "./columns";

const COLUMNS = [{ width: "minmax(10rem, 2fr)" }, { width: "80px", wide: true }, {}];

it("adds up the least widths of the columns", () => {
  expect(leastOf(COLUMNS)).toBe("10rem + 80px + 6rem");
});

it("moves wide columns to the end on a narrow screen", () => {
  expect(ordered(COLUMNS, false)).toEqual(COLUMNS);
  expect(ordered(COLUMNS, true)).toEqual([COLUMNS[0], COLUMNS[2], COLUMNS[1]]);
});
