/** What checks said about the lots of a dataset, the newest first. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { LotName, RunName } from "../../kit/Names";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { lotPlace } from "../../router/places";
import { useQuery } from "../../router/router";

type Check = Schemas["CheckOfLot"];
const PART = 200;

export function Checks({ dataset }: { dataset: { readonly namespace: string; readonly name: string } }) {
  const [query, setQuery] = useQuery();
  const failed = query.get("failed") !== null;
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const found = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/checks", { path, query: { failed, limit: PART, offset } }, { keep: true });
  const columns: Column<Check>[] = [
    { title: "lot", cell: (check) => <LotName dataset={dataset} lot={check.lot} />, width: "minmax(8rem, 1fr)" },
    { title: "check", cell: (check) => <span title={check.name}>{check.name}</span>, width: "minmax(6rem, 1fr)" },
    { title: "field", cell: (check) => check.field ?? "–", width: "minmax(4rem, 0.5fr)", wide: true },
    { title: "said", cell: (check) => <Status of={check.success ? "good" : "failed"} label={check.success ? "passed" : "failed"} />, width: "90px" },
    { title: "detail", cell: (check) => <span title={check.detail ?? ""}>{check.detail}</span>, width: "minmax(6rem, 2fr)", wide: true },
    { title: "run", cell: (check) => check.run && <RunName of={check.run} />, width: "120px", wide: true },
    { title: "when", cell: (check) => <Time at={check.at} />, width: "84px" },
  ];
  return (
    <Panel
      title="Checks of lots"
      aside={
        <label className="check">
          <input type="checkbox" checked={failed} onChange={(event) => setQuery({ failed: event.target.checked, from: null })} /> only what failed
        </label>
      }
    >
      <Shown of={found}>
        {({ checks }) =>
          checks.length === 0 ? (
            <Empty icon="check" title={failed ? "No check of a lot failed" : "No lot was checked"}>
              {failed ? "Every check of this dataset passed, or there was none." : "Give the arc that makes its lots checks, or report them with a run."}
              {!failed && <pre>{'checks = ["my_checks:has_every_hour"]'}</pre>}
            </Empty>
          ) : (
            <>
              <Rows of={checks} label="checks" columns={columns} to={(check) => lotPlace(dataset, check.lot)} />
              <Pager onFirst={offset ? () => setQuery({ from: null }) : null} onNext={checks.length < PART ? null : () => setQuery({ from: offset + PART }, { push: true })} />
            </>
          )
        }
      </Shown>
    </Panel>
  );
}
