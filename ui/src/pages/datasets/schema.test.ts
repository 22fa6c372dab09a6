import { expect, it } from "vitest";
import type { Field } from "../runs/facets";
import { compare, inShort } from "./schema";

const field = (name: string, type: string): Field => ({ name, type, description: null, tags: [] });

it("tells what was added, removed and changed, each where it belongs", () => {
  const before = [field("id", "BIGINT"), field("vat", "NUMERIC"), field("at", "DATE")];
  const after = [field("id", "BIGINT"), field("at", "TIMESTAMP"), field("discount", "NUMERIC")];
  const found = compare(before, after);
  expect(found.map((each) => [each.name, each.change])).toEqual([
    ["id", "same"],
    ["vat", "removed"],
    ["at", "changed"],
    ["discount", "added"],
  ]);
  expect(inShort(found).map((each) => each.text)).toEqual(["−vat", "~at", "+discount"]);
});
