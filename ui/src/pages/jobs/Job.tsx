/** A job or an arc: its runs over time, its lots, its versions, and what can be done with it. */
import { HoldJob, ReleaseHold } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetName } from "../../kit/Names";
import { Facts, Json, PageHead, Panel, Tabs } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status, Tag } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural, span } from "../../kit/words";
import { Link } from "../../router/Link";
import { jobNode, jobPlace, lineagePlace } from "../../router/places";
import { useQuery } from "../../router/router";
import { LogTable } from "../datasets/Lot";
import { sqlOf, tagsOf } from "../runs/facets";
import { Backfill } from "./Backfill";
import "./jobs.css";
import { JobLots } from "./JobLots";
import { Runs } from "./Runs";

export default function Job({ namespace = "", name = "" }: { namespace?: string; name?: string }) {
  const found = useGet("/api/v1/namespaces/{namespace}/jobs/{job}", { path: { namespace, job: name } });
  return <Shown of={found}>{(job) => <Whole job={job} />}</Shown>;
}

function Whole({ job }: { job: Schemas["Job"] }) {
  const [query] = useQuery();
  const path = { namespace: job.namespace, job: job.name };
  const standing = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/standing", { path }).value;
  const runs = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/runs", { path, query: { limit: 1 } }).value?.totalCount;
  const wiring = standing?.wiring;
  const tab = query.get("tab") ?? "runs";
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="gear" size={14} /> {standing?.isArc ? "Arc" : "Job"} in {job.namespace}
          </>
        }
        title={job.name}
        copies={job.name}
        actions={
          <>
            <ButtonLink to={lineagePlace(jobNode(job.id))} icon="graph">
              Lineage
            </ButtonLink>
            {wiring?.heldThrough && <ReleaseHold hold={{ kind: "LINEAGE", namespace: job.namespace, name: job.name, source: wiring.heldThrough }} />}
            {wiring && !wiring.heldThrough && <HoldJob namespace={job.namespace} job={job.name} isHeld={wiring.held !== null} />}
          </>
        }
      >
        {job.latestRun && <Status of={job.latestRun.state} />}
        {wiring && <Stuck job={job} />}
        <Wired job={job} />
        {tagsOf(job.tags).map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
        {wiring?.held && (
          <Tag tone="held">
            held by {wiring.held.who}: {wiring.held.why || "no reason given"}
          </Tag>
        )}
      </PageHead>
      {job.description && <p className="describes">{job.description}</p>}
      <Tabs
        tabs={[
          { id: "runs", label: "Runs", count: runs },
          ...(wiring ? [{ id: "lots", label: "Lots" }] : []),
          ...(standing?.isArc ? [{ id: "backfill", label: "Backfill" }] : []),
          { id: "versions", label: "Versions" },
          ...(wiring ? [{ id: "log", label: "History" }] : []),
          { id: "about", label: "About" },
        ]}
      />
      <div className="stack">
        {tab === "runs" && <Runs job={job} />}
        {tab === "lots" && wiring && <JobLots job={job} wiring={wiring} />}
        {tab === "backfill" && <Backfill job={job} />}
        {tab === "versions" && <Versions job={job} />}
        {tab === "log" && <Log path={path} />}
        {tab === "about" && <About job={job} wiring={wiring ?? null} isArc={standing?.isArc ?? false} />}
      </div>
    </>
  );
}

/** What of its lots does not go on by itself: a run that went well says nothing of those. */
function Stuck({ job }: { job: Schemas["Job"] }) {
  const work = useGet("/api/v1/standing", {}).value?.work.find((each) => each.namespace === job.namespace && each.job === job.name);
  const parts = [
    { state: "HELD", lots: work?.held ?? 0, word: "held" },
    { state: "LATER", lots: work?.later ?? 0, word: "to be tried again later" },
  ];
  return (
    <>
      {parts.filter(({ lots }) => lots > 0).map(({ state, lots, word }) => (
        <Link key={state} to={jobPlace(job.id, { tab: "lots", work: state })}>
          <Status of={state} label={`${plural(lots, "lot")} ${word}`} />
        </Link>
      ))}
    </>
  );
}

function Wired({ job }: { job: Schemas["Job"] }) {
  const few = (ids: readonly Schemas["EntityId"][]) => (
    <>
      {ids.slice(0, 3).map((id, at) => (
        <span key={`${id.namespace}/${id.name}`}>
          {at > 0 && ", "}
          <DatasetName of={id} />
        </span>
      ))}
      {ids.length > 3 && ` and ${ids.length - 3} more`}
    </>
  );
  if (job.inputs.length + job.outputs.length === 0) return null;
  return (
    <span className="wired">
      <span>
        {job.inputs.length > 0 && <>reads {few(job.inputs)}</>}
        {job.inputs.length > 0 && job.outputs.length > 0 && "; "}
        {job.outputs.length > 0 && <>writes {few(job.outputs)}</>}
      </span>
    </span>
  );
}

function Versions({ job }: { job: Schemas["Job"] }) {
  const found = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/versions", { path: { namespace: job.namespace, job: job.name }, query: { limit: 200 } });
  const names = (value: unknown) => (Array.isArray(value) ? value.map((each: { name?: string }) => each.name).join(", ") : "");
  return (
    <Shown of={found}>
      {(value) =>
        value.versions.length === 0 ? (
          <Empty icon="gear" title="There is no version yet" />
        ) : (
          <Panel title="Versions" aside={`${value.totalCount} in all; a version is what a job read and wrote, and where its code was`}>
            <Rows
              of={value.versions}
              label="versions"
              columns={[
                { title: "version", cell: (each) => <span className="mono">{each.version.slice(0, 8)}</span>, width: "90px" },
                { title: "reads", cell: (each) => names(each.inputs), width: "minmax(6rem, 1fr)" },
                { title: "writes", cell: (each) => names(each.outputs), width: "minmax(6rem, 1fr)" },
                { title: "latest run", cell: (each) => each.latestRun && <Status of={each.latestRun.state} />, width: "116px" },
                { title: "made", cell: (each) => <Time at={each.createdAt} />, width: "100px" },
              ]}
            />
          </Panel>
        )
      }
    </Shown>
  );
}

function Log({ path }: { path: { namespace: string; job: string } }) {
  const log = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", { path, query: { limit: 500 } });
  return <Shown of={log}>{(value) => <LogTable entries={value.entries} />}</Shown>;
}

function About({ job, wiring, isArc }: { job: Schemas["Job"]; wiring: Schemas["Wiring"] | null; isArc: boolean }) {
  const arc = useGet("/api/v1/namespaces/{namespace}/arcs/{arc}", isArc ? { path: { namespace: job.namespace, arc: job.name } } : null).value;
  const sql = sqlOf(job.facets);
  return (
    <>
      <Panel title="What is known">
        <div className="body">
          <Facts
            of={[
              ["Kind", job.type.toLowerCase()],
              ["Known since", <Time at={job.createdAt} full />],
              ["Changed", <Time at={job.updatedAt} full />],
              ["Part of", job.parentJobName ?? "nothing larger"],
              ["Code", job.location ? <span className="uri">{job.location}</span> : "not told"],
              ["Tries", wiring ? `${wiring.triesMax}, ${span(wiring.backOffSeconds)} apart at first` : "one by one"],
              ["Lease", wiring ? span(wiring.leaseSeconds) : "none"],
            ]}
          />
        </div>
      </Panel>
      {arc && (
        <Panel title="How the arc was declared">
          <Json value={{ inputs: arc.inputs, outputs: arc.outputs, workload: arc.workload, parts: arc.parts, retry: arc.retry, runningMax: arc.runningMax, onEmpty: arc.onEmpty }} />
        </Panel>
      )}
      {sql && (
        <Panel title="SQL">
          <pre className="json" tabIndex={0}>
            {sql}
          </pre>
        </Panel>
      )}
      <Panel title="Facets">
        <Json value={job.facets} />
      </Panel>
    </>
  );
}
