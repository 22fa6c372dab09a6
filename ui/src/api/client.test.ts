import { beforeEach, describe, expect, it, vi } from "vitest";
import { call } from "./client";

const fetched = vi.fn(() => Promise.resolve(new Response("{}")));

beforeEach(() => {
  fetched.mockClear();
  vi.stubGlobal("sessionStorage", { getItem: () => null });
  vi.stubGlobal("fetch", fetched);
});

const remove = (namespace: string, dataset: string) =>
  call("delete", "/api/v1/namespaces/{namespace}/datasets/{dataset}", { path: { namespace, dataset } });

describe("a call", () => {
  it("is not made with a name of dots, which would make it a call on something else", async () => {
    for (const dots of [".", ".."]) {
      for (const answer of [await remove("food", dots), await remove(dots, "raw")]) {
        expect(answer).toMatchObject({ ok: false, problem: { status: 422 } });
      }
    }
    expect(fetched).not.toHaveBeenCalled();
  });
  it("is made with any other name", async () => {
    for (const name of ["...", ".hidden", "a/../b", "..?"]) expect((await remove("food", name)).ok).toBe(true);
    expect(fetched.mock.lastCall).toEqual([
      "/api/v1/namespaces/food/datasets/..%3F",
      { method: "DELETE", headers: {} },
    ]);
  });
  it("never throws: an answer that was cut off is none, and one that is not of this API says so", async () => {
    const cut = new ReadableStream({
      start: (controller) => controller.error(new TypeError("network error")),
    });
    fetched.mockResolvedValueOnce(new Response(cut));
    expect(await remove("food", "raw")).toMatchObject({ ok: false, problem: { status: 0 } });
    fetched.mockResolvedValueOnce(new Response("<html>Sign in</html>"));
    expect(await remove("food", "raw")).toMatchObject({ ok: false, problem: { status: 200 } });
  });
});
