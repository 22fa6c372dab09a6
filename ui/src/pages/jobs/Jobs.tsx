/** All jobs, the last updated first; or those with open lots. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { JobName } from "../../kit/Names";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { type Paged, usePages } from "../../kit/pages";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Status, Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Lasted, Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";
import { jobPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import "./jobs.css";
import { Strip } from "./Strip";

const STATES = ["RUNNING", "FAILED", "COMPLETED", "ABORTED", "NEW"] as const;
type State = (typeof STATES)[number];

export default function Jobs() {
  const [query, setQuery] = useQuery();
  const words = query.get("q");
  const isOpen = query.get("open") !== null;
  return (
    <>
      <PageHead title="Jobs and arcs" />
      <div className="filters">
        <NamespaceFilter all="all" />
        <label className="row">
          Latest run
          <select className="field" value={words ? "" : (query.get("state") ?? "")} disabled={Boolean(words)} title={words ? "Words are looked for in jobs of any state" : undefined} onChange={(event) => setQuery({ state: event.target.value, open: null })}>
            <option value="">any state</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {state.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={isOpen} onChange={(event) => setQuery({ open: event.target.checked, state: null, q: null })} /> with open lots
        </label>
        <SearchField label="Search jobs" />
      </div>
      {isOpen ? <Open namespace={query.get("namespace")} words={words} /> : words ? <Found words={words} namespace={query.get("namespace")} /> : <Listed namespace={query.get("namespace")} state={query.get("state") as State | null} />}
    </>
  );
}

function Listed({ namespace, state }: { namespace: string | null; state: State | null }) {
  return namespace ? <OfNamespace key={namespace} namespace={namespace} state={state} /> : <OfAll state={state} />;
}

const pick = (answer: Schemas["Jobs"]) => ({ items: answer.jobs, total: answer.totalCount });
const asked = (state: State | null) => (state ? { query: { lastRunStates: [state] } } : {});

function OfAll({ state }: { state: State | null }) {
  return <List list={usePages("/api/v1/jobs", asked(state), pick)} />;
}

function OfNamespace({ namespace, state }: { namespace: string; state: State | null }) {
  return <List list={usePages("/api/v1/namespaces/{namespace}/jobs", { path: { namespace }, ...asked(state) }, pick)} />;
}

function List({ list }: { list: Paged<Schemas["Job"]> }) {
  const arcs = useGet("/api/v1/arcs", {}).value?.arcs ?? [];
  const isArc = new Set(arcs.map((arc) => `${arc.namespace}/${arc.name}`));
  const columns: Column<Schemas["Job"]>[] = [
    { title: "job", cell: (job) => <><JobName of={job.id} /> {isArc.has(`${job.namespace}/${job.name}`) && <Tag tone="active">arc</Tag>}</>, width: "minmax(10rem, 2.2fr)" },
    { title: "namespace", cell: (job) => <span className="muted">{job.namespace}</span>, width: "minmax(5rem, 0.8fr)", wide: true },
    { title: "latest run", cell: (job) => (job.latestRun ? <Status of={job.latestRun.state} /> : <span className="faint">none</span>), width: "116px" },
    { title: "last runs", cell: (job) => <Strip runs={job.latestRuns ?? []} />, width: "120px", wide: true },
    { title: "took", cell: (job) => job.latestRun && <Lasted from={job.latestRun.startedAt} to={job.latestRun.endedAt} />, width: "90px", end: true, wide: true },
    { title: "began", cell: (job) => <Time at={job.latestRun?.startedAt} />, width: "100px" },
  ];
  if (list.problem) return <Trouble problem={list.problem} />;
  if (list.isReady && list.count === 0) {
    return (
      <Empty icon="gear" title="No job here">
        Jobs appear when they run. Point a client at this server, or declare an arc:
        <pre>{`export OPENLINEAGE_URL=${window.location.origin}\npenstock arcs apply arcs.toml`}</pre>
      </Empty>
    );
  }
  return (
    <Panel title="Jobs" aside={`${list.said("job")}, the last updated first`}>
      <Table columns={columns} label="jobs" count={list.count} row={list.row} onRange={list.onRange} to={(job) => jobPlace(job.id)} />
    </Panel>
  );
}

function Open({ namespace, words }: { namespace: string | null; words: string | null }) {
  const standing = useGet("/api/v1/standing", {});
  const number = (value: number) => (value ? count(value) : <span className="faint">–</span>);
  return (
    <Shown of={standing}>
      {(now) => {
        const work = now.work.filter((job) => (!namespace || job.namespace === namespace) && (!words || job.job.toLowerCase().includes(words.toLowerCase())));
        return (
          <Panel title="Jobs with open lots" aside={plural(work.length, "job")}>
            {work.length === 0 ? (
              <Empty icon={words ? "search" : "check"} title={words ? "No job with open lots is named like that" : "Every lot that came is done"} />
            ) : (
              <Rows
                of={work}
                label="jobs with open lots"
                to={(job) => jobPlace({ namespace: job.namespace, name: job.job }, { tab: "lots" })}
                columns={[
                  { title: "job", cell: (job) => <JobName of={{ namespace: job.namespace, name: job.job }} whole />, width: "minmax(10rem, 2fr)" },
                  { title: "running", cell: (job) => number(job.running), width: "80px", end: true },
                  { title: "ready", cell: (job) => number(job.ready), width: "80px", end: true },
                  { title: "waiting", cell: (job) => number(job.waiting), width: "80px", end: true },
                  { title: "retry later", cell: (job) => number(job.later), width: "90px", end: true },
                  { title: "held", cell: (job) => number(job.held), width: "70px", end: true },
                ]}
              />
            )}
          </Panel>
        );
      }}
    </Shown>
  );
}

type Result = Schemas["SearchResult"];

const FOUND: Column<Result>[] = [
  { title: "job", cell: (each) => <JobName of={each} />, width: "minmax(10rem, 2fr)" },
  { title: "namespace", cell: (each) => each.namespace },
  { title: "changed", cell: (each) => <Time at={each.updatedAt} />, width: "110px" },
];

function Found({ words, namespace }: { words: string; namespace: string | null }) {
  const list = usePages("/api/v1/search", { query: { q: words, filter: "JOB", ...(namespace ? { namespace } : {}) } }, (answer) => ({ items: answer.results, total: answer.totalCount }));
  if (list.problem) return <Trouble problem={list.problem} />;
  return (
    <Panel title={`Named like “${words}”${namespace ? ` in ${namespace}` : ""}`} aside={list.said("job")}>
      <Table columns={FOUND} label="jobs found" count={list.count} row={list.row} onRange={list.onRange} to={(each) => jobPlace(each)} />
      {list.isReady && list.count === 0 && <Empty icon="search" title="Nothing is named like that" />}
    </Panel>
  );
}
