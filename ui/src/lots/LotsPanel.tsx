/** The lots of a dataset: a grid of those that are intervals, a list of those whose names are free. */
import type { Schemas } from "../api/client";
import { useGet } from "../api/hooks";
import { ButtonLink } from "../kit/Button";
import { JobName, LotName } from "../kit/Names";
import { type Paged, usePages } from "../kit/pages";
import { Panel } from "../kit/Panel";
import { Empty, Shown, Trouble } from "../kit/Shown";
import { Status } from "../kit/Status";
import { type Column, Table } from "../kit/Table";
import { Time } from "../kit/Time";
import { plural } from "../kit/words";
import { lotPlace } from "../router/places";
import { useQuery } from "../router/router";
import { HeatGrid } from "./HeatGrid";
import { LotSummary } from "./LotSummary";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** The grid of a dataset, and the chosen lot beside it; the choice is in the address. */
export function LotsPanel({ dataset, title = "Lots" }: { dataset: Named; title?: string }) {
  const [query, setQuery] = useQuery();
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const standing = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/standing", { path });
  const interval = standing.value?.interval;
  const gaps = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps", interval ? { path, query: { causes: false } } : null, { keep: true });
  const chosen = query.get("lot");
  if (standing.problem && !standing.value) return <Trouble problem={standing.problem} />;
  if (standing.value && !interval) return <LotList dataset={dataset} title={title} />;
  return (
    <Shown of={gaps}>
      {(value) => (
        <>
          <Panel title={title} aside={`${plural(value.count, "lot")} of ${value.interval}, ${value.first} to ${value.last}`}>
            <HeatGrid interval={value.interval} first={value.first} count={value.count} ranges={value.ranges} totals={value.totals} there={value.there} isCut={value.isCut} chosen={chosen} onChoose={(lot) => setQuery({ lot })} />
          </Panel>
          {chosen && <LotSummary dataset={dataset} lot={chosen} onClose={() => setQuery({ lot: null })} />}
          <Others dataset={dataset} />
        </>
      )}
    </Shown>
  );
}

function useLots(dataset: Named, named: boolean): Paged<Schemas["Lot"]> {
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  return usePages("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots", { path, query: { named } }, (answer) => ({ items: answer.lots, total: answer.totalCount }));
}

/** What the grid has no place for. */
function Others({ dataset }: { dataset: Named }) {
  const lots = useLots(dataset, true);
  if (lots.problem) return <Trouble problem={lots.problem} />;
  return lots.count > 0 && <Listed dataset={dataset} title="Lots with names of their own" lots={lots} />;
}

function Listed({ dataset, title, lots }: { dataset: Named; title: string; lots: Paged<Schemas["Lot"]> }) {
  const columns: Column<Schemas["Lot"]>[] = [
    { title: "lot", cell: (lot) => <LotName dataset={dataset} lot={lot.lot} />, width: "minmax(9rem, 2fr)" },
    { title: "status", cell: (lot) => <Status of={lot.status} />, width: "110px" },
    { title: "made by", cell: (lot) => lot.job && <JobName of={lot.job} />, width: "minmax(7rem, 1fr)", wide: true },
    { title: "locked for", cell: (lot) => lot.locks.join(", "), wide: true },
    { title: "since", cell: (lot) => <Time at={lot.since} />, width: "110px" },
  ];
  return (
    <Panel title={title} aside={lots.said("lot")}>
      <Table columns={columns} label="lots" count={lots.count} row={lots.row} onRange={lots.onRange} to={(lot) => lotPlace(dataset, lot.lot)} />
    </Panel>
  );
}

function LotList({ dataset, title }: { dataset: Named; title: string }) {
  const lots = useLots(dataset, false);
  if (lots.problem) return <Trouble problem={lots.problem} />;
  if (lots.isReady && lots.count === 0) {
    return (
      <Panel title={title}>
        <Empty icon="table" title="This dataset has no lots">
          Lots come from a job that works chunk by chunk, from a place that is watched, or by hand:
          <pre>
            penstock lots register {dataset.namespace}/{dataset.name} 2026-11-15
          </pre>
        </Empty>
      </Panel>
    );
  }
  return <Listed dataset={dataset} title={title} lots={lots} />;
}

/** A button to the page of one lot. */
export function ToLot({ dataset, lot }: { dataset: Named; lot: string }) {
  return (
    <ButtonLink to={lotPlace(dataset, lot)} icon="right">
      Open the lot
    </ButtonLink>
  );
}
