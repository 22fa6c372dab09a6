/** The live claims, the one whose lease ends first in front. */
import { EndClaim } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { Moment } from "../../kit/Moment";
import { DatasetName, JobName, RunName, WorkName } from "../../kit/Names";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { usePages } from "../../kit/pages";
import { Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Trouble } from "../../kit/Shown";
import { type Column, Table } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { span } from "../../kit/words";
import { workPlace } from "../../router/places";
import { useQuery } from "../../router/router";

type Lock = Schemas["Lock"];
const SOON_SECONDS = 10;

const COLUMNS: Column<Lock>[] = [
  { title: "lot", cell: (lock) => <WorkName job={jobOf(lock)} lot={lock.lot} />, width: "minmax(7rem, 1fr)" },
  { title: "job", cell: (lock) => <JobName of={jobOf(lock)} />, width: "minmax(6rem, 0.9fr)", wide: true, told: true },
  { title: "worker", cell: (lock) => <span title={lock.owner}>{lock.owner}</span>, width: "minmax(7rem, 1.1fr)", wide: true, told: true },
  { title: "locks", cell: (lock) => <Locked of={lock} />, width: "minmax(7rem, 1.2fr)", wide: true },
  { title: "run", cell: (lock) => <RunName of={lock.claim} />, width: "115px", wide: true },
  { title: "since", cell: (lock) => <Time at={lock.since} />, width: "84px", wide: true, told: true },
  { title: "lease left", cell: (lock) => <Lease until={lock.leaseUntil} />, width: "66px", end: true },
  { title: "", acts: true, cell: (lock) => <EndClaim namespace={lock.namespace} job={lock.job} lot={lock.lot} owner={lock.owner} />, width: "148px", end: true },
];

const jobOf = (lock: Lock) => ({ namespace: lock.namespace, name: lock.job });

const below = (lock: Lock) => (
  <>
    <JobName of={jobOf(lock)} /> by <span title={lock.owner}>{lock.owner}</span>, since <Time at={lock.since} />
  </>
);

export function Claims() {
  const [query] = useQuery();
  const given = Object.fromEntries(["namespace", "job", "dataset", "lot"].flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));
  const needsNamespace = !query.get("namespace") && (query.get("job") || query.get("dataset"));
  const list = usePages("/api/v1/locks", { query: needsNamespace ? {} : given }, (answer) => ({ items: answer.locks, total: answer.totalCount }));
  return (
    <>
      <div className="filters tight">
        <NamespaceFilter all="all" />
        <SearchField label="Job (whole name)" name="job" />
        <SearchField label="Dataset (whole name)" name="dataset" />
        <SearchField label="Lot" name="lot" />
      </div>
      {needsNamespace && <p className="muted">Choose a namespace too: a job or a dataset is named within one.</p>}
      {list.problem ? (
        <Trouble problem={list.problem} />
      ) : list.isReady && list.count === 0 ? (
        <Empty icon="lock" title={Object.keys(given).length ? "Nobody holds anything like that" : "Nobody holds anything"}>
          A worker that takes a lot is shown here until it publishes, fails or gives it back:
          <pre>penstock arcs start</pre>
        </Empty>
      ) : (
        <Panel title="Who holds what" aside={`${list.said("claim")}, the lease that ends first in front`}>
          <Table columns={COLUMNS} label="claims" count={list.count} row={list.row} onRange={list.onRange} to={(lock) => workPlace(jobOf(lock), lock.lot)} below={below} />
        </Panel>
      )}
    </>
  );
}

function Locked({ of: lock }: { of: Lock }) {
  return (
    <>
      {lock.datasets.map((each, place) => (
        <span key={`${each.role} ${each.namespace}/${each.name}`} title={`${each.namespace}/${each.name}: ${each.locks.join(", ") || "nothing"} locked`}>
          {place > 0 && ", "}
          <span className="faint">{each.role === "INPUT" ? "reads " : "writes "}</span>
          <DatasetName of={each} />
        </span>
      ))}
    </>
  );
}

/** How long a claim holds if nothing more is heard of its worker. */
function Lease({ until }: { until: string }) {
  const left = (Date.parse(until) - useNow()) / 1000;
  const tone = left <= 0 ? "bad" : left < SOON_SECONDS ? "warn" : "none";
  return (
    <Moment at={until} className={`toned tone-${tone} num`}>
      {left <= 0 ? "over" : span(left)}
    </Moment>
  );
}
