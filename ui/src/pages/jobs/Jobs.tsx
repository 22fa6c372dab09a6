/** The jobs, last updated first, or those with open lots. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { JobLink } from "../../kit/links";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { type PagedList, usePagedList } from "../../kit/usePagedList";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, Async, ProblemNote } from "../../kit/Async";
import { RUN_STATES, type RunState } from "../../kit/states";
import { Status, Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Duration, Time } from "../../kit/Time";
import { count, plural } from "../../kit/format";
import { jobAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import "./jobs.css";
import { RunStrip } from "./RunStrip";

export default function Jobs() {
  const [query, setQuery] = useSearchParams();
  const words = query.get("q");
  const isOpen = query.get("open") !== null;
  return (
    <>
      <PageHead title="Jobs and arcs" />
      <div className="filters">
        <NamespaceFilter all="all" />
        <label className="row">
          Latest run
          <select
            className="field"
            value={words ? "" : (query.get("state") ?? "")}
            disabled={Boolean(words)}
            title={words ? "The search covers jobs of any state" : undefined}
            onChange={(event) => setQuery({ state: event.target.value, open: null })}
          >
            <option value="">any state</option>
            {RUN_STATES.map((state) => (
              <option key={state} value={state}>
                {state.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={isOpen}
            onChange={(event) => setQuery({ open: event.target.checked, state: null, q: null })}
          />{" "}
          with open lots
        </label>
        <SearchField label="Search jobs" />
      </div>
      {isOpen ? (
        <OpenJobs namespace={query.get("namespace")} words={words} />
      ) : words ? (
        <JobSearch words={words} namespace={query.get("namespace")} />
      ) : (
        <JobList namespace={query.get("namespace")} state={query.get("state") as RunState | null} />
      )}
    </>
  );
}

function JobList({ namespace, state }: { namespace: string | null; state: RunState | null }) {
  return namespace ? (
    <NamespaceJobs key={namespace} namespace={namespace} state={state} />
  ) : (
    <AllJobs state={state} />
  );
}

const pick = (answer: Schemas["Jobs"]) => ({ items: answer.jobs, total: answer.totalCount });
const stateQuery = (state: RunState | null) => (state ? { query: { lastRunStates: [state] } } : {});

function AllJobs({ state }: { state: RunState | null }) {
  return <JobTable list={usePagedList("/api/v1/jobs", stateQuery(state), pick)} />;
}

function NamespaceJobs({ namespace, state }: { namespace: string; state: RunState | null }) {
  return (
    <JobTable
      list={usePagedList(
        "/api/v1/namespaces/{namespace}/jobs",
        { path: { namespace }, ...stateQuery(state) },
        pick,
      )}
    />
  );
}

function JobTable({ list }: { list: PagedList<Schemas["Job"]> }) {
  const arcs = useGet("/api/v1/arcs", {}).data?.arcs ?? [];
  const isArc = new Set(arcs.map((arc) => `${arc.namespace}/${arc.name}`));
  const columns: Column<Schemas["Job"]>[] = [
    {
      title: "job",
      cell: (job) => (
        <>
          <JobLink of={job.id} />{" "}
          {isArc.has(`${job.namespace}/${job.name}`) && <Tag tone="active">arc</Tag>}
        </>
      ),
      width: "minmax(10rem, 2.2fr)",
    },
    {
      title: "namespace",
      cell: (job) => <span className="muted">{job.namespace}</span>,
      width: "minmax(5rem, 0.8fr)",
      wide: true,
    },
    {
      title: "latest run",
      cell: (job) =>
        job.latestRun ? <Status of={job.latestRun.state} /> : <span className="faint">none</span>,
      width: "116px",
    },
    {
      title: "last runs",
      cell: (job) => <RunStrip runs={job.latestRuns ?? []} />,
      width: "120px",
      wide: true,
    },
    {
      title: "took",
      cell: (job) =>
        job.latestRun && <Duration from={job.latestRun.startedAt} to={job.latestRun.endedAt} />,
      width: "90px",
      end: true,
      wide: true,
    },
    { title: "started", cell: (job) => <Time at={job.latestRun?.startedAt} />, width: "100px" },
  ];
  if (list.problem) return <ProblemNote problem={list.problem} />;
  if (list.isReady && list.count === 0) {
    return (
      <EmptyState icon="gear" title="No job yet">
        A job appears with its first run. Point a client at this server, or declare an arc:
        <pre>{`export OPENLINEAGE_URL=${window.location.origin}\npenstock arcs apply arcs.toml`}</pre>
      </EmptyState>
    );
  }
  return (
    <Panel title="Jobs" aside={`${list.countText("job")}, last updated first`}>
      <Table
        columns={columns}
        label="jobs"
        count={list.count}
        row={list.row}
        onRange={list.onRange}
        to={(job) => jobAddress(job.id)}
      />
    </Panel>
  );
}

function OpenJobs({ namespace, words }: { namespace: string | null; words: string | null }) {
  const standing = useGet("/api/v1/standing", {});
  const number = (value: number) => (value ? count(value) : <span className="faint">–</span>);
  return (
    <Async of={standing}>
      {(now) => {
        const work = now.work.filter(
          (job) =>
            (!namespace || job.namespace === namespace) &&
            (!words || job.job.toLowerCase().includes(words.toLowerCase())),
        );
        return (
          <Panel title="Jobs with open lots" aside={plural(work.length, "job")}>
            {work.length === 0 ? (
              <EmptyState
                icon={words ? "search" : "check"}
                title={words ? "No job with open lots matches" : "Every lot is done"}
              />
            ) : (
              <Rows
                of={work}
                label="jobs with open lots"
                to={(job) =>
                  jobAddress({ namespace: job.namespace, name: job.job }, { tab: "lots" })
                }
                columns={[
                  {
                    title: "job",
                    cell: (job) => (
                      <JobLink of={{ namespace: job.namespace, name: job.job }} whole />
                    ),
                    width: "minmax(10rem, 2fr)",
                  },
                  {
                    title: "running",
                    cell: (job) => number(job.running),
                    width: "80px",
                    end: true,
                  },
                  { title: "ready", cell: (job) => number(job.ready), width: "80px", end: true },
                  {
                    title: "waiting",
                    cell: (job) => number(job.waiting),
                    width: "80px",
                    end: true,
                  },
                  {
                    title: "retry later",
                    cell: (job) => number(job.retryable),
                    width: "90px",
                    end: true,
                  },
                  { title: "held", cell: (job) => number(job.held), width: "70px", end: true },
                ]}
              />
            )}
          </Panel>
        );
      }}
    </Async>
  );
}

type Result = Schemas["SearchResult"];

const RESULT_COLUMNS: Column<Result>[] = [
  { title: "job", cell: (each) => <JobLink of={each} />, width: "minmax(10rem, 2fr)" },
  { title: "namespace", cell: (each) => each.namespace },
  { title: "changed", cell: (each) => <Time at={each.updatedAt} />, width: "110px" },
];

function JobSearch({ words, namespace }: { words: string; namespace: string | null }) {
  const list = usePagedList(
    "/api/v1/search",
    { query: { q: words, filter: "JOB", ...(namespace ? { namespace } : {}) } },
    (answer) => ({ items: answer.results, total: answer.totalCount }),
  );
  if (list.problem) return <ProblemNote problem={list.problem} />;
  return (
    <Panel
      title={`Search results for “${words}”${namespace ? ` in ${namespace}` : ""}`}
      aside={list.countText("job")}
    >
      <Table
        columns={RESULT_COLUMNS}
        label="jobs found"
        count={list.count}
        row={list.row}
        onRange={list.onRange}
        to={(each) => jobAddress(each)}
      />
      {list.isReady && list.count === 0 && <EmptyState icon="search" title="No job matches" />}
    </Panel>
  );
}
