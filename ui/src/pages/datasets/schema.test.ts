import { expect, it } from "vitest";
import type { Field } from "../runs/facets";
import { compare, changeLabels } from "./schema";

const field = (name: string, type: string): Field => ({ name, type, description: null, tags: [] });

it("lists added, removed and changed fields at their positions", () => {
  const before = [field("id", "BIGINT"), field("vat", "NUMERIC"), field("at", "DATE")];
  const after = [field("id", "BIGINT"), field("at", "TIMESTAMP"), field("discount", "NUMERIC")];
  const changes = compare(before, after);
  expect(changes.map((each) => [each.name, each.change])).toEqual([
    ["id", "same"],
    ["vat", "removed"],
    ["at", "changed"],
    ["discount", "added"],
  ]);
  expect(changeLabels(changes).map((each) => each.text)).toEqual(["−vat", "~at", "+discount"]);
});
