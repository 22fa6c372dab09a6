import { QueryObserver } from "@tanstack/react-query";
import { beforeEach, describe, expect, it, vi } from "vitest";

const fetchMock = vi.fn<(url: string) => Promise<Response>>();
let changed: () => void = () => undefined;

vi.mock("./live", () => ({
  onChange: (listener: () => void) => {
    changed = listener;
  },
}));

/** Follow an address, as a component does. */
async function follow(url: string, isLive = true) {
  const { queryClient, queryOf } = await import("./queries");
  const observer = new QueryObserver(queryClient, queryOf(url, isLive));
  const stop = observer.subscribe(() => undefined);
  return { read: () => observer.getCurrentResult(), stop };
}

beforeEach(() => {
  vi.resetModules();
  vi.useRealTimers();
  fetchMock.mockReset();
  vi.stubGlobal("sessionStorage", { getItem: () => null });
  vi.stubGlobal("fetch", fetchMock);
});

describe("a query", () => {
  it("keeps its data and has a problem when a later read fails", async () => {
    fetchMock.mockResolvedValueOnce(new Response('{"lots":3}'));
    const { read, stop } = await follow("/api/v1/lots");
    await vi.waitFor(() => expect(read().data).toEqual({ lots: 3 }));

    fetchMock.mockRejectedValueOnce(new TypeError("network error"));
    changed();

    await vi.waitFor(() => expect(read().error).toMatchObject({ status: 0 }));
    expect(read().data).toEqual({ lots: 3 });
    stop();
  });

  it("is dropped with the key, and ignores an answer to the former key", async () => {
    const { resetAll } = await import("./queries");
    let answer: (response: Response) => void = () => undefined;
    fetchMock.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    const { read, stop } = await follow("/api/v1/lots");

    fetchMock.mockResolvedValueOnce(new Response('{"lots":1}'));
    resetAll();
    answer(new Response('{"lots":3}'));

    expect(read().data).toBeUndefined();
    await vi.waitFor(() => expect(read().data).toEqual({ lots: 1 }));
    stop();
  });

  it("is read again when a change came while it was being read", async () => {
    vi.useFakeTimers();
    let answer: (response: Response) => void = () => undefined;
    fetchMock.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    fetchMock.mockResolvedValueOnce(new Response('{"lots":4}'));
    const { read, stop } = await follow("/api/v1/lots");

    changed();
    await vi.advanceTimersByTimeAsync(1_000);
    answer(new Response('{"lots":3}'));
    await vi.advanceTimersByTimeAsync(2_000);

    expect(read().data).toEqual({ lots: 4 });
    expect(fetchMock).toHaveBeenCalledTimes(2);
    stop();
  });

  it("is read at most once a second, and never again if it is not live", async () => {
    vi.useFakeTimers();
    fetchMock.mockImplementation(() => Promise.resolve(new Response("{}")));
    const live = await follow("/api/v1/lots");
    const fixed = await follow("/api/v1/key", false);
    await vi.advanceTimersByTimeAsync(1_000);
    fetchMock.mockClear();

    for (let change = 0; change < 9; change += 1) {
      changed();
      await vi.advanceTimersByTimeAsync(100);
    }

    expect(fetchMock.mock.calls.map(([url]) => url)).toEqual(["/api/v1/lots"]);
    live.stop();
    fixed.stop();
  });
});
