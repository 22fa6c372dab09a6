/** The quality of the current version, from the facets of the dataset. */
import { type Facets, facetsOf } from "../runs/facets";

export interface Test {
  readonly name: string;
  readonly field: string | null;
  readonly isPassed: boolean;
  /** Whether a failure is only a warning. */
  readonly isWarning: boolean;
  readonly detail: string;
}

export interface Figure {
  readonly name: string;
  /** The field, or null for the whole dataset. */
  readonly field: string | null;
  readonly value: string;
}

type Facet = Readonly<Record<string, unknown>>;

const WARNINGS = new Set(["warn", "warning", "info"]);
const isFacet = (value: unknown): value is Facet =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string | null => (typeof value === "string" && value ? value : null);

/** List the tests of a dataset: failures first, then by field. */
export function testsOf(facets: unknown): readonly Test[] {
  const all = facetsOf(facets);
  return [
    ...assertionsOf(all, "dataQualityAssertions", "assertion"),
    ...assertionsOf(all, "greatExpectations_assertions", "expectationType"),
  ].sort(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      (a.field ?? "").localeCompare(b.field ?? "") ||
      a.name.localeCompare(b.name),
  );
}

const rankOf = (test: Test): number => (test.isPassed ? 2 : test.isWarning ? 1 : 0);

function assertionsOf(facets: Facets, facet: string, name: string): readonly Test[] {
  const assertions = facets[facet]?.["assertions"];
  if (!Array.isArray(assertions)) return [];
  return assertions.filter(isFacet).map((each) => ({
    name: text(each["name"]) ?? text(each[name]) ?? "a test",
    field: text(each["column"]),
    isPassed: each["success"] === true,
    isWarning: WARNINGS.has((text(each["severity"]) ?? "").toLowerCase()),
    detail: detailOf(each),
  }));
}

function detailOf(assertion: Facet): string {
  const [expected, actual] = [text(assertion["expected"]), text(assertion["actual"])];
  const compared =
    actual === null
      ? null
      : expected === null
        ? `was ${actual}`
        : `expected ${expected}, was ${actual}`;
  return [text(assertion["description"]), compared].filter(Boolean).join(": ");
}

/** List the figures of a dataset, then those of its fields. */
export function figuresOf(facets: unknown): readonly Figure[] {
  const all = facetsOf(facets);
  const metrics = all["dataQualityMetrics"] ?? {};
  const whole = { ...all["outputStatistics"], ...metrics };
  const columns = isFacet(metrics["columnMetrics"]) ? metrics["columnMetrics"] : {};
  return [
    ...numbersIn(whole, null),
    ...Object.entries(columns).flatMap(([field, of]) => (isFacet(of) ? numbersIn(of, field) : [])),
  ];
}

function numbersIn(of: Facet, field: string | null): readonly Figure[] {
  return Object.entries(of)
    .filter((entry): entry is [string, number] => typeof entry[1] === "number")
    .map(([name, value]) => ({ name: wordsOf(name), field, value: value.toLocaleString("en") }));
}

/** Format `nullCount` as words. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`);
}
