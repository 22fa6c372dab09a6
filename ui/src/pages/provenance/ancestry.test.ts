import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { ancestryOf } from "./ancestry";

const version = (id: string, inputs: string[]) =>
  ({ id, inputs }) as unknown as Schemas["LotVersion"];

describe("the versions behind a lot", () => {
  it("are in full once, also if they were read twice", () => {
    const tree = ancestryOf([
      version("bulletin", ["totals", "alerts"]),
      version("totals", ["raw"]),
      version("alerts", ["raw"]),
      version("raw", []),
    ]);
    expect(tree.root).toBe("bulletin");
    expect(tree.below("bulletin")).toEqual(["totals", "alerts"]);
    expect(tree.below("totals")).toEqual(["raw"]);
    const [again = ""] = tree.below("alerts");
    expect(tree.isAgain(again)).toBe(true);
    expect(tree.version(again)?.id).toBe("raw");
    expect(tree.below(again)).toEqual([]);
  });
});
