import { describe, expect, it } from "vitest";
import { kindOf, targetOf, wholeTime } from "./targets";

const of = (text: string) => new URLSearchParams(text);

describe("the bad data of a replay", () => {
  it("is a lot of a dataset, the outputs of a job, or a batch", () => {
    expect(targetOf(of("namespace=river&dataset=clean&lot=7"))).toEqual({
      namespace: "river",
      dataset: "clean",
      lot: "7",
      downstreamOnly: false,
    });
    expect(targetOf(of("namespace=river&job=clean&from=2026-11-15&only=1"))).toEqual({
      namespace: "river",
      job: "clean",
      from: "2026-11-15T00:00:00Z",
      downstreamOnly: true,
    });
    expect(targetOf(of("batch=bid1"))).toEqual({ batch: "bid1", downstreamOnly: false });
  });
  it("is null until every required value is there", () => {
    expect(targetOf(of("namespace=river&dataset=clean"))).toBeNull();
    expect(kindOf(of("of=job"))).toBe("job");
    expect(targetOf(of("of=job&namespace=river"))).toBeNull();
  });
  it("has completed times", () => {
    expect(wholeTime("2026-11-15 09:30")).toBe("2026-11-15T09:30:00Z");
    expect(wholeTime("")).toBeNull();
  });
});
