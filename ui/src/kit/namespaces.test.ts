import { expect, it } from "vitest";
import { likeliest } from "./namespaces";

it("takes the namespace in which something happened last where none is named", () => {
  const job = { namespace: "etl", inputs: [{ namespace: "raw" }], outputs: [] };
  expect(likeliest("dataset", [job, { ...job, outputs: [{ namespace: "marts" }] }])).toBe("marts");
  expect(likeliest("dataset", [job])).toBe("raw");
  expect(likeliest("job", [job])).toBe("etl");
  expect(likeliest("dataset", [])).toBeUndefined();
});
