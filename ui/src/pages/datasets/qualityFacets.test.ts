import { describe, expect, it } from "vitest";
import { figuresOf, testsOf } from "./qualityFacets";

const FACETS = {
  dataQualityAssertions: {
    assertions: [
      { assertion: "unique", column: "id", success: true },
      {
        assertion: "not_null",
        column: "mail",
        success: false,
        severity: "WARN",
        expected: "0",
        actual: "3",
      },
      7,
    ],
  },
  greatExpectations_assertions: {
    assertions: [{ expectationType: "expect_column_to_exist", success: false }],
  },
  dataQualityMetrics: { rowCount: 1200, columnMetrics: { id: { nullCount: 0, quantiles: {} } } },
  outputStatistics: { rowCount: 1, size: 4096 },
};

describe("the quality facets", () => {
  it("list tests of both kinds, failures first", () => {
    expect(testsOf(FACETS)).toEqual([
      {
        name: "expect_column_to_exist",
        field: null,
        isPassed: false,
        isWarning: false,
        detail: "",
      },
      {
        name: "not_null",
        field: "mail",
        isPassed: false,
        isWarning: true,
        detail: "expected 0, was 3",
      },
      { name: "unique", field: "id", isPassed: true, isWarning: false, detail: "" },
    ]);
  });

  it("list figures of the dataset and of its fields", () => {
    expect(figuresOf(FACETS)).toEqual([
      { name: "row count", field: null, value: "1,200" },
      { name: "size", field: null, value: "4,096" },
      { name: "null count", field: "id", value: "0" },
    ]);
  });

  it("ignore facets of another shape", () => {
    for (const odd of [null, {}, { dataQualityAssertions: 7, dataQualityMetrics: [] }]) {
      expect([testsOf(odd), figuresOf(odd)]).toEqual([[], []]);
    }
  });
});
