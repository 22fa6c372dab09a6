/** The lots of a dataset: a grid of intervals, a list of lots with free names. */
import type { EntityId, Schemas } from "../api/client";
import { useGet } from "../api/queries";
import { ButtonLink } from "../kit/Button";
import { JobLink, LotLink } from "../kit/links";
import { type PagedList, usePagedList } from "../kit/usePagedList";
import { Panel } from "../kit/Panel";
import { EmptyState, Async, ProblemNote } from "../kit/Async";
import { Status } from "../kit/Status";
import { type Column, Table } from "../kit/Table";
import { Time } from "../kit/Time";
import { plural } from "../kit/format";
import { lotAddress } from "../router/addresses";
import { useSearchParams } from "../router/router";
import { HeatGrid } from "./HeatGrid";
import { LotSummary } from "./LotSummary";

/** The grid of a dataset and the summary of the chosen lot. The choice is in the address. */
export function LotsPanel({ dataset, title = "Lots" }: { dataset: EntityId; title?: string }) {
  const [query, setQuery] = useSearchParams();
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const standing = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/standing", { path });
  const interval = standing.data?.interval;
  const gaps = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps",
    interval ? { path, query: { causes: false } } : null,
    { keep: true },
  );
  const chosen = query.get("lot");
  if (standing.error && !standing.data) return <ProblemNote problem={standing.error} />;
  if (standing.data && !interval) return <LotList dataset={dataset} title={title} />;
  return (
    <Async of={gaps}>
      {(value) => (
        <>
          <Panel
            title={title}
            aside={`${plural(value.count, "lot")} of ${value.interval}, ${value.first} to ${value.last}`}
          >
            <HeatGrid
              interval={value.interval}
              first={value.first}
              count={value.count}
              ranges={value.ranges}
              totals={value.totals}
              there={value.there}
              isCut={value.isCut}
              chosen={chosen}
              onChoose={(lot) => setQuery({ lot })}
            />
          </Panel>
          {chosen && (
            <LotSummary dataset={dataset} lot={chosen} onClose={() => setQuery({ lot: null })} />
          )}
          <NamedLots dataset={dataset} />
        </>
      )}
    </Async>
  );
}

function useLots(dataset: EntityId, named: boolean): PagedList<Schemas["Lot"]> {
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  return usePagedList(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots",
    { path, query: { named } },
    (answer) => ({ items: answer.lots, total: answer.totalCount }),
  );
}

/** The lots of a grid dataset that are not intervals. */
function NamedLots({ dataset }: { dataset: EntityId }) {
  const lots = useLots(dataset, true);
  if (lots.problem) return <ProblemNote problem={lots.problem} />;
  return lots.count > 0 && <LotTable dataset={dataset} title="Lots with free names" lots={lots} />;
}

function LotTable({
  dataset,
  title,
  lots,
}: {
  dataset: EntityId;
  title: string;
  lots: PagedList<Schemas["Lot"]>;
}) {
  const columns: Column<Schemas["Lot"]>[] = [
    {
      title: "lot",
      cell: (lot) => <LotLink dataset={dataset} lot={lot.lot} />,
      width: "minmax(9rem, 2fr)",
    },
    { title: "status", cell: (lot) => <Status of={lot.status} />, width: "110px" },
    {
      title: "made by",
      cell: (lot) => lot.job && <JobLink of={lot.job} />,
      width: "minmax(7rem, 1fr)",
      wide: true,
    },
    { title: "locked for", cell: (lot) => lot.locks.join(", "), wide: true },
    { title: "since", cell: (lot) => <Time at={lot.since} />, width: "110px" },
  ];
  return (
    <Panel title={title} aside={lots.countText("lot")}>
      <Table
        columns={columns}
        label="lots"
        count={lots.count}
        row={lots.row}
        onRange={lots.onRange}
        to={(lot) => lotAddress(dataset, lot.lot)}
      />
    </Panel>
  );
}

function LotList({ dataset, title }: { dataset: EntityId; title: string }) {
  const lots = useLots(dataset, false);
  if (lots.problem) return <ProblemNote problem={lots.problem} />;
  if (lots.isReady && lots.count === 0) {
    return (
      <Panel title={title}>
        <EmptyState icon="table" title="This dataset has no lots">
          Lots come from a job that works lot by lot, from a watched location, or from a command:
          <pre>
            penstock lots register {dataset.namespace}/{dataset.name} 2026-11-15
          </pre>
        </EmptyState>
      </Panel>
    );
  }
  return <LotTable dataset={dataset} title={title} lots={lots} />;
}

/** A button to the page of one lot. */
export function LotButton({ dataset, lot }: { dataset: EntityId; lot: string }) {
  return (
    <ButtonLink to={lotAddress(dataset, lot)} icon="right">
      Open lot
    </ButtonLink>
  );
}
