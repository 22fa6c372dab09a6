import { beforeAll, describe, expect, it, vi } from "vitest";

let linksForId: typeof import("./quickLinks").linksForId;

beforeAll(async () => {
  vi.stubGlobal("window", {
    location: { href: "http://here/" },
    addEventListener: () => undefined,
    history: { state: null },
  });
  ({ linksForId } = await import("./quickLinks"));
});

const to = (text: string, path = "/") => linksForId(text, path).map((link) => link.to);

describe("the links for an id", () => {
  it("lead to batches, ingest jobs and runs", () => {
    expect(to("bid0000000002")).toEqual(["/ingest/batches/bid0000000002"]);
    expect(to("JID17")).toEqual(["/ingest/jobs/jid0000000017"]);
    expect(to("01a1ee7d-0226-769d-a285-812e4dd91a7e")).toEqual([
      "/runs/01a1ee7d-0226-769d-a285-812e4dd91a7e",
    ]);
    expect(to("orders")).toEqual([]);
  });
  it("lead to lots of the current page", () => {
    expect(to("20261115PT1H09", "/datasets/shop/a%2Fb")).toEqual([
      "/datasets/shop/a%2Fb/lots/20261115PT1H09",
      "/locks?lot=20261115PT1H09",
    ]);
    expect(to("bid0000000002", "/jobs/shop/load/lots/x")).toEqual([
      "/ingest/batches/bid0000000002",
      "/jobs/shop/load/lots/bid0000000002",
    ]);
    expect(to("20261115PT1H09")).toEqual(["/locks?lot=20261115PT1H09"]);
  });
});
