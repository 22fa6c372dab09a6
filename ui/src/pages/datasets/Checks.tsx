/** The check results of the lots of a dataset, newest first. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { LotLink, RunLink } from "../../kit/links";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { lotAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";

type Check = Schemas["CheckOfLot"];
const PART = 200;

export function Checks({
  dataset,
}: {
  dataset: { readonly namespace: string; readonly name: string };
}) {
  const [query, setQuery] = useSearchParams();
  const failed = query.get("failed") !== null;
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const result = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/checks",
    { path, query: { failed, limit: PART, offset } },
    { keep: true },
  );
  const columns: Column<Check>[] = [
    {
      title: "lot",
      cell: (check) => <LotLink dataset={dataset} lot={check.lot} />,
      width: "minmax(8rem, 1fr)",
    },
    {
      title: "check",
      cell: (check) => <span title={check.name}>{check.name}</span>,
      width: "minmax(6rem, 1fr)",
    },
    {
      title: "field",
      cell: (check) => check.field ?? "–",
      width: "minmax(4rem, 0.5fr)",
      wide: true,
    },
    {
      title: "result",
      cell: (check) => (
        <Status
          of={check.success ? "good" : "failed"}
          label={check.success ? "passed" : "failed"}
        />
      ),
      width: "90px",
    },
    {
      title: "detail",
      cell: (check) => <span title={check.detail ?? ""}>{check.detail}</span>,
      width: "minmax(6rem, 2fr)",
      wide: true,
    },
    {
      title: "run",
      cell: (check) => check.run && <RunLink of={check.run} />,
      width: "120px",
      wide: true,
    },
    { title: "when", cell: (check) => <Time at={check.at} />, width: "84px" },
  ];
  return (
    <Panel
      title="Checks of lots"
      aside={
        <label className="check">
          <input
            type="checkbox"
            checked={failed}
            onChange={(event) => setQuery({ failed: event.target.checked, from: null })}
          />{" "}
          only failed
        </label>
      }
    >
      <Async of={result}>
        {({ checks }) =>
          checks.length === 0 ? (
            <EmptyState
              icon="check"
              title={failed ? "No check of a lot failed" : "No check has run"}
            >
              {failed
                ? "Every check of this dataset passed, or none has run."
                : "Add checks to the arc that makes its lots, or report them with a run."}
              {!failed && <pre>{'checks = ["my_checks:has_every_hour"]'}</pre>}
            </EmptyState>
          ) : (
            <>
              <Rows
                of={checks}
                label="checks"
                columns={columns}
                to={(check) => lotAddress(dataset, check.lot)}
              />
              <Pager
                onFirst={offset ? () => setQuery({ from: null }) : null}
                onNext={
                  checks.length < PART
                    ? null
                    : () => setQuery({ from: offset + PART }, { push: true })
                }
              />
            </>
          )
        }
      </Async>
    </Panel>
  );
}
