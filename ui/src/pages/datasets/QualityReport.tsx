/** The tests and figures of the current version, as runs reported them. */
import type { Schemas } from "../../api/client";
import { Panel } from "../../kit/Panel";
import { Status, Tag } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { plural } from "../../kit/format";
import { type Figure, figuresOf, type Test, testsOf } from "./qualityFacets";

const TESTS: readonly Column<Test>[] = [
  {
    title: "test",
    cell: (test) => <span title={test.name}>{test.name}</span>,
    width: "minmax(8rem, 1fr)",
  },
  {
    title: "field",
    cell: (test) => <span className="mono">{test.field ?? "–"}</span>,
    width: "minmax(5rem, 0.6fr)",
  },
  { title: "result", cell: (test) => <Result of={test} />, width: "100px" },
  {
    title: "detail",
    cell: (test) => <span title={test.detail}>{test.detail}</span>,
    width: "minmax(6rem, 2fr)",
    wide: true,
  },
];
const FIGURES: readonly Column<Figure>[] = [
  {
    title: "field",
    cell: (figure) => (figure.field ? <span className="mono">{figure.field}</span> : "all rows"),
    width: "minmax(8rem, 1fr)",
  },
  { title: "figure", cell: (figure) => figure.name, width: "minmax(6rem, 1fr)" },
  {
    title: "value",
    cell: (figure) => <span className="num">{figure.value}</span>,
    width: "minmax(5rem, 1fr)",
    end: true,
  },
];

function Result({ of: test }: { of: Test }) {
  if (test.isPassed) return <Status of="good" label="passed" />;
  return test.isWarning ? <Tag tone="warn">warning</Tag> : <Status of="failed" label="failed" />;
}

export function QualityReport({ dataset }: { dataset: Schemas["Dataset"] }) {
  const [tests, figures] = [testsOf(dataset.facets), figuresOf(dataset.facets)];
  const version = dataset.currentVersionNumber
    ? `V${dataset.currentVersionNumber}`
    : "the latest version";
  return (
    <>
      {tests.length > 0 && (
        <Panel title={`Tests of ${version}`} aside={summaryOf(tests)}>
          <Rows of={tests} columns={TESTS} label="tests" rows={12} />
        </Panel>
      )}
      {figures.length > 0 && (
        <Panel title={`Figures about ${version}`}>
          <Rows of={figures} columns={FIGURES} label="figures" rows={12} />
        </Panel>
      )}
    </>
  );
}

/** A tag for a dataset whose tests failed. */
export function FailedTests({ dataset }: { dataset: Schemas["Dataset"] }) {
  const tests = testsOf(dataset.facets);
  const failed = tests.filter((test) => !test.isPassed && !test.isWarning).length;
  return failed > 0 ? (
    <Tag tone="bad">{`${failed} of ${plural(tests.length, "test")} failed`}</Tag>
  ) : null;
}

function summaryOf(tests: readonly Test[]): string {
  const passed = tests.filter((test) => test.isPassed).length;
  return passed === tests.length ? `${passed} passed` : `${passed} of ${tests.length} passed`;
}
