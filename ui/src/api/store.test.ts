import { beforeEach, describe, expect, it, vi } from "vitest";

const fetched = vi.fn<(url: string) => Promise<Response>>();
let held: string | null = null;

beforeEach(() => {
  vi.resetModules();
  fetched.mockReset();
  held = null;
  vi.stubGlobal("sessionStorage", {
    getItem: () => held,
    setItem: (_: string, value: string) => {
      held = value;
    },
    removeItem: () => {
      held = null;
    },
  });
  vi.stubGlobal("fetch", fetched);
});

describe("what was read", () => {
  it("is read again after an answer that was cut off", async () => {
    const { peek, read } = await import("./store");
    const cut = new ReadableStream({ start: (controller) => controller.error(new TypeError("network error")) });
    fetched.mockResolvedValueOnce(new Response(cut)).mockResolvedValueOnce(new Response('{"lots":3}'));
    await read("/api/v1/lots").catch(() => undefined);
    await read("/api/v1/lots");
    expect(peek("/api/v1/lots")).toMatchObject({ value: { lots: 3 }, isReading: false });
  });
  it("is forgotten with the key, also what comes late, and what is shown is read anew", async () => {
    const { peek, read, renew, watch } = await import("./store");
    let answer: (response: Response) => void = () => undefined;
    fetched.mockResolvedValueOnce(new Response('{"lots":3}')).mockReturnValueOnce(new Promise((done) => (answer = done)));
    await read("/api/v1/lots");
    const late = read("/api/v1/jobs");
    fetched.mockResolvedValue(new Response('{"lots":1}'));
    const stop = watch("/api/v1/lots", () => undefined, true);
    renew();
    expect(peek("/api/v1/lots").value).toBeUndefined();
    answer(new Response('{"jobs":5}'));
    await late;
    expect(peek("/api/v1/jobs")).toMatchObject({ value: undefined, isReading: false });
    await vi.waitFor(() => expect(peek("/api/v1/lots").value).toEqual({ lots: 1 }));
    stop();
  });
});
