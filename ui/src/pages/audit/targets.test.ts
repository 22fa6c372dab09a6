import { describe, expect, it, vi } from "vitest";

vi.stubGlobal("window", {
  location: { href: "http://localhost/" },
  addEventListener: () => undefined,
  history: { state: null },
});
const { targetAddress } = await import("./targets");

describe("the target of an entry of the audit log", () => {
  it("leads to its page", () => {
    expect(targetAddress("hold batch", "bid0000000001")).toBe("/ingest/batches/bid0000000001");
    expect(targetAddress("hold collection", "gauges")).toBe("/ingest/collections/gauges");
    expect(targetAddress("apply arc", "river/clean")).toBe("/jobs/river/clean");
    expect(targetAddress("paused replay", "01a1e158-0c2b-7609-ab0d-18108dd2ce54")).toBe(
      "/replay/01a1e158-0c2b-7609-ab0d-18108dd2ce54",
    );
    expect(targetAddress("dataset delete", "dataset:postgres://warehouse:5432:marts.revenue")).toBe(
      "/datasets/postgres%3A%2F%2Fwarehouse%3A5432/marts.revenue",
    );
    expect(targetAddress("work hold", "job:shop:clean lot 20261115PT1H09")).toBe(
      "/jobs/shop/clean/lots/20261115PT1H09",
    );
    expect(targetAddress("lot accept", "dataset:shop:clean 20261115PT1H09")).toBe(
      "/datasets/shop/clean/lots/20261115PT1H09",
    );
  });
  it("leads nowhere if it has no page", () => {
    expect(targetAddress("release all held", "every collection")).toBeNull();
  });
});
