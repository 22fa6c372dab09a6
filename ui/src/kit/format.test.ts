import { describe, expect, it } from "vitest";
import { ago, shortDigest, localTime, plural, shorten, size, span } from "./format";

describe("format", () => {
  it("sizes and durations", () => {
    expect([0, 999, 1500, 123_456_789].map(size)).toEqual(["0 B", "999 B", "1.5 kB", "123 MB"]);
    expect([99_940, 99_960, 999_499, 999_950].map(size)).toEqual([
      "99.9 kB",
      "100 kB",
      "999 kB",
      "1.0 MB",
    ]);
    expect([0.02, 4.26, 75, 3_720, 200_000].map(span)).toEqual([
      "20 ms",
      "4.3 s",
      "1 min 15 s",
      "1 h 2 min",
      "2 d 7 h",
    ]);
  });
  it("the age of a time, and the time until it", () => {
    const now = Date.parse("2026-11-15T12:00:00Z");
    expect(ago(now - 2_000, now)).toBe("now");
    expect(ago(now - 3_700_000, now)).toBe("1 h ago");
    expect(ago(now + 600_000, now)).toBe("in 10 min");
  });
  it("a time in a time zone", () => {
    const noon = Date.parse("2026-11-15T12:00:00Z");
    expect(localTime(noon, "Asia/Kolkata")).toBe("2026-11-15 17:30:00 Asia/Kolkata");
    expect(localTime(noon, "America/New_York")).toBe("2026-11-15 07:00:00 America/New York");
    expect(localTime(noon, "UTC")).toBeNull();
  });
  it("counts and shortened names", () => {
    expect(plural(1, "lot")).toBe("1 lot");
    expect(plural(1200, "lot")).toBe("1,200 lots");
    expect(shortDigest("0123456789abcdef0123456789abcdef")).toBe("0123456789abcdef01234567…");
    expect(shorten("abcdefghijklmnop", 9)).toBe("abcd…mnop");
  });
});
