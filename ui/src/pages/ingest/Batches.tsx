/** The batches, newest first, filtered by state and collection. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Share } from "../../kit/Bars";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { BATCH_STATES, type BatchState } from "../../kit/states";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, size } from "../../kit/format";
import { useSearchParams } from "../../router/router";
import { BatchLink, batchAddress, CollectionLink } from "./links";
import { jobsIn, sharesOf } from "./tally";

type Batch = Schemas["ShownBatch"];
const PART = 100;

const COLUMNS: Column<Batch>[] = [
  { title: "batch", cell: (batch) => <BatchLink of={batch.id} />, width: "118px" },
  { title: "state", cell: (batch) => <Status of={batch.status} />, width: "118px" },
  {
    title: "collection",
    cell: (batch) => <CollectionLink of={batch.collection} />,
    width: "minmax(6rem, 0.8fr)",
    wide: true,
  },
  {
    title: "payload",
    cell: (batch) => <span title={batch.payloadUrl}>{batch.payloadName}</span>,
    width: "minmax(7rem, 1fr)",
    wide: true,
  },
  { title: "jobs", cell: (batch) => <JobCount of={batch} />, width: "76px", end: true, wide: true },
  {
    title: "progress",
    cell: (batch) =>
      batch.tally && batch.jobs > 0 && <Share parts={sharesOf(batch.tally)} of={batch.jobs} />,
    width: "minmax(5rem, 0.8fr)",
    wide: true,
  },
  {
    title: "bytes",
    cell: (batch) => <BatchBytes of={batch} />,
    width: "80px",
    end: true,
    wide: true,
  },
  {
    title: "message",
    cell: (batch) => <span title={batch.message}>{batch.message}</span>,
    width: "minmax(5rem, 1fr)",
    wide: true,
  },
  { title: "submitted", cell: (batch) => <Time at={batch.submittedAt} />, width: "84px" },
];

export function Batches({ collection }: { collection?: string }) {
  const [query, setQuery] = useSearchParams();
  const status = query.get("state") as BatchState | null;
  const before = query.get("before");
  const of = collection ?? query.get("collection");
  const collections =
    useGet("/api/v1/ingest/collections", collection ? null : {}).data?.collections ?? [];
  const result = useGet(
    "/api/v1/ingest/batches",
    {
      query: {
        limit: PART,
        ...(status ? { status } : {}),
        ...(of ? { collection: of } : {}),
        ...(before ? { before } : {}),
      },
    },
    { keep: true },
  );
  return (
    <>
      <div className="filters">
        <label className="row">
          State
          <select
            className="field"
            value={status ?? ""}
            onChange={(event) => setQuery({ state: event.target.value, before: null })}
          >
            <option value="">any state</option>
            {BATCH_STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
        {!collection && (
          <label className="row">
            Collection
            <select
              className="field"
              value={of ?? ""}
              onChange={(event) => setQuery({ collection: event.target.value, before: null })}
            >
              <option value="">all</option>
              {collections.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Async of={result}>
        {({ batches }) =>
          batches.length === 0 ? (
            <NoBatches collection={of} isFiltered={Boolean(status || before)} />
          ) : (
            <Panel title="Batches" aside={before ? `older than ${before}` : "newest first"}>
              <Rows
                of={batches}
                label="batches"
                columns={COLUMNS}
                to={(batch) => batchAddress(batch.id)}
              />
              <Pager
                onFirst={before ? () => setQuery({ before: null }) : null}
                onNext={
                  batches.length < PART
                    ? null
                    : () => setQuery({ before: batches.at(-1)?.id }, { push: true })
                }
              />
            </Panel>
          )
        }
      </Async>
    </>
  );
}

function BatchBytes({ of: batch }: { of: Batch }) {
  if (!batch.tally || batch.jobs === 0) return <span className="faint">–</span>;
  return size(Object.values(batch.tally).reduce((sum, each) => sum + each.bytes, 0));
}

function JobCount({ of: batch }: { of: Batch }) {
  if (batch.jobs === 0) return <span className="faint">–</span>;
  if (!batch.tally) return count(batch.jobs);
  const done = jobsIn(batch.tally, "completed");
  return done === batch.jobs ? count(batch.jobs) : `${count(done)} of ${count(batch.jobs)}`;
}

function NoBatches({ collection, isFiltered }: { collection: string | null; isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon="inbox" title="No batch matches">
        Choose another state, or any state.
      </EmptyState>
    );
  return (
    <EmptyState icon="inbox" title="No batch yet">
      Create a collection, submit a file, an archive or a manifest to it, and start daemons:
      <pre>{`penstock ingest submit ${collection ?? "COLLECTION"} FILE\npenstock ingest start`}</pre>
    </EmptyState>
  );
}
