import { beforeEach, describe, expect, it, vi } from "vitest";
import { call } from "./client";

const fetchMock = vi.fn(() => Promise.resolve(new Response("{}")));

beforeEach(() => {
  fetchMock.mockClear();
  vi.stubGlobal("sessionStorage", { getItem: () => null });
  vi.stubGlobal("fetch", fetchMock);
});

const remove = (namespace: string, dataset: string) =>
  call("delete", "/api/v1/namespaces/{namespace}/datasets/{dataset}", {
    path: { namespace, dataset },
  });

describe("a call", () => {
  it("is refused for a name of dots, which a browser resolves to another path", async () => {
    for (const dots of [".", ".."]) {
      for (const answer of [await remove("food", dots), await remove(dots, "raw")]) {
        expect(answer).toMatchObject({ ok: false, problem: { status: 422 } });
      }
    }
    expect(fetchMock).not.toHaveBeenCalled();
  });
  it("takes any other name", async () => {
    for (const name of ["...", ".hidden", "a/../b", "..?"])
      expect((await remove("food", name)).ok).toBe(true);
    expect(fetchMock.mock.lastCall).toEqual([
      "/api/v1/namespaces/food/datasets/..%3F",
      { method: "DELETE", headers: {} },
    ]);
  });
  it("never throws for a truncated answer or one that is not of this API", async () => {
    const cut = new ReadableStream({
      start: (controller) => controller.error(new TypeError("network error")),
    });
    fetchMock.mockResolvedValueOnce(new Response(cut));
    expect(await remove("food", "raw")).toMatchObject({ ok: false, problem: { status: 0 } });
    fetchMock.mockResolvedValueOnce(new Response("<html>Sign in</html>"));
    expect(await remove("food", "raw")).toMatchObject({ ok: false, problem: { status: 200 } });
  });
});
