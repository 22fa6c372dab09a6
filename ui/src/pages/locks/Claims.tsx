/** The live claims, in the order in which their leases end. */
import { EndClaimButton } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { Timestamp } from "../../kit/Timestamp";
import { DatasetLink, JobLink, RunLink, WorkLink } from "../../kit/links";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { usePagedList } from "../../kit/usePagedList";
import { Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, ProblemNote } from "../../kit/Async";
import { type Column, Table } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { span } from "../../kit/format";
import { workAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";

type Lock = Schemas["Lock"];
const SOON_SECONDS = 10;

const COLUMNS: Column<Lock>[] = [
  {
    title: "lot",
    cell: (lock) => <WorkLink job={jobOf(lock)} lot={lock.lot} />,
    width: "minmax(7rem, 1fr)",
  },
  {
    title: "job",
    cell: (lock) => <JobLink of={jobOf(lock)} />,
    width: "minmax(6rem, 0.9fr)",
    wide: true,
    inBelow: true,
  },
  {
    title: "worker",
    cell: (lock) => <span title={lock.owner}>{lock.owner}</span>,
    width: "minmax(7rem, 1.1fr)",
    wide: true,
    inBelow: true,
  },
  {
    title: "locks",
    cell: (lock) => <LockedDatasets of={lock} />,
    width: "minmax(7rem, 1.2fr)",
    wide: true,
  },
  { title: "run", cell: (lock) => <RunLink of={lock.claim} />, width: "115px", wide: true },
  {
    title: "since",
    cell: (lock) => <Time at={lock.since} />,
    width: "84px",
    wide: true,
    inBelow: true,
  },
  {
    title: "lease left",
    cell: (lock) => <Lease until={lock.leaseUntil} />,
    width: "66px",
    end: true,
  },
  {
    title: "",
    isAction: true,
    cell: (lock) => (
      <EndClaimButton namespace={lock.namespace} job={lock.job} lot={lock.lot} owner={lock.owner} />
    ),
    width: "148px",
    end: true,
  },
];

const jobOf = (lock: Lock) => ({ namespace: lock.namespace, name: lock.job });

const below = (lock: Lock) => (
  <>
    <JobLink of={jobOf(lock)} /> by <span title={lock.owner}>{lock.owner}</span>, since{" "}
    <Time at={lock.since} />
  </>
);

export function Claims() {
  const [query] = useSearchParams();
  const filters = Object.fromEntries(
    ["namespace", "job", "dataset", "lot"].flatMap((name) =>
      query.get(name) ? [[name, query.get(name)]] : [],
    ),
  );
  const needsNamespace = !query.get("namespace") && (query.get("job") || query.get("dataset"));
  const list = usePagedList(
    "/api/v1/locks",
    { query: needsNamespace ? {} : filters },
    (answer) => ({
      items: answer.locks,
      total: answer.totalCount,
    }),
  );
  return (
    <>
      <div className="filters tight">
        <NamespaceFilter all="all" />
        <SearchField label="Job (full name)" name="job" />
        <SearchField label="Dataset (full name)" name="dataset" />
        <SearchField label="Lot" name="lot" />
      </div>
      {needsNamespace && (
        <p className="muted">
          Choose a namespace too: names of jobs and datasets are unique only within one.
        </p>
      )}
      {list.problem ? (
        <ProblemNote problem={list.problem} />
      ) : list.isReady && list.count === 0 ? (
        <EmptyState
          icon="lock"
          title={Object.keys(filters).length ? "No claim matches" : "No claim"}
        >
          A worker that claims a lot is listed until it completes, fails or releases the claim:
          <pre>penstock arcs start</pre>
        </EmptyState>
      ) : (
        <Panel title="Claims" aside={`${list.countText("claim")}, next lease to end first`}>
          <Table
            columns={COLUMNS}
            label="claims"
            count={list.count}
            row={list.row}
            onRange={list.onRange}
            to={(lock) => workAddress(jobOf(lock), lock.lot)}
            below={below}
          />
        </Panel>
      )}
    </>
  );
}

function LockedDatasets({ of: lock }: { of: Lock }) {
  return (
    <>
      {lock.datasets.map((each, place) => (
        <span
          key={`${each.role} ${each.namespace}/${each.name}`}
          title={`${each.namespace}/${each.name}: ${each.locks.join(", ") || "nothing"} locked`}
        >
          {place > 0 && ", "}
          <span className="faint">{each.role === "INPUT" ? "reads " : "writes "}</span>
          <DatasetLink of={each} />
        </span>
      ))}
    </>
  );
}

/** The time until a claim expires if its worker does not renew it. */
function Lease({ until }: { until: string }) {
  const left = (Date.parse(until) - useNow()) / 1000;
  const tone = left <= 0 ? "bad" : left < SOON_SECONDS ? "warn" : "none";
  return (
    <Timestamp at={until} className={`toned tone-${tone} num`}>
      {left <= 0 ? "over" : span(left)}
    </Timestamp>
  );
}
