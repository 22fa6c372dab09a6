import { expect, it } from "vitest";
import { defaultNamespace } from "./namespaces";

it("takes the namespace of the last activity when none is chosen", () => {
  const job = { namespace: "etl", inputs: [{ namespace: "raw" }], outputs: [] };
  expect(defaultNamespace("dataset", [job, { ...job, outputs: [{ namespace: "marts" }] }])).toBe(
    "marts",
  );
  expect(defaultNamespace("dataset", [job])).toBe("raw");
  expect(defaultNamespace("job", [job])).toBe("etl");
  expect(defaultNamespace("dataset", [])).toBeUndefined();
});
