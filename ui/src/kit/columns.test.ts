import { expect, it } from "vitest";
import { leastOf, ordered } from "./columns";

const COLUMNS = [{ width: "minmax(10rem, 2fr)" }, { width: "80px", wide: true }, {}];

it("need together what each needs at least", () => {
  expect(leastOf(COLUMNS)).toBe("10rem + 80px + 6rem");
});

it("come in another order on a narrow screen, and none is left out", () => {
  expect(ordered(COLUMNS, false)).toEqual(COLUMNS);
  expect(ordered(COLUMNS, true)).toEqual([COLUMNS[0], COLUMNS[2], COLUMNS[1]]);
});
