/** A job or an arc: its runs, its lots, its versions, and the actions on it. */
import { HoldJobButton, EndHold } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetLink } from "../../kit/links";
import { Facts, Json, PageHead, Panel, Tabs } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status, Tag } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural, span } from "../../kit/format";
import { Link } from "../../router/Link";
import { jobNode, jobAddress, lineageAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { LogTable } from "../datasets/Lot";
import { sqlOf, tagsOf } from "../runs/facets";
import { BackfillTab } from "./BackfillTab";
import "./jobs.css";
import { JobLots } from "./JobLots";
import { Runs } from "./Runs";

export default function Job({ namespace = "", name = "" }: { namespace?: string; name?: string }) {
  const result = useGet("/api/v1/namespaces/{namespace}/jobs/{job}", {
    path: { namespace, job: name },
  });
  return <Async of={result}>{(job) => <JobDetails job={job} />}</Async>;
}

function JobDetails({ job }: { job: Schemas["Job"] }) {
  const [query] = useSearchParams();
  const path = { namespace: job.namespace, job: job.name };
  const standing = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/standing", { path }).data;
  const runs = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/runs", {
    path,
    query: { limit: 1 },
  }).data?.totalCount;
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
            <ButtonLink to={lineageAddress(jobNode(job.id))} icon="graph">
              Lineage
            </ButtonLink>
            {wiring?.heldThrough && (
              <EndHold
                hold={{
                  kind: "LINEAGE",
                  namespace: job.namespace,
                  name: job.name,
                  source: wiring.heldThrough,
                }}
              />
            )}
            {wiring && !wiring.heldThrough && (
              <HoldJobButton
                namespace={job.namespace}
                job={job.name}
                isHeld={wiring.held !== null}
              />
            )}
          </>
        }
      >
        {job.latestRun && <Status of={job.latestRun.state} />}
        {wiring && <StuckLots job={job} />}
        <WiringSummary job={job} />
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
        {tab === "backfill" && <BackfillTab job={job} />}
        {tab === "versions" && <Versions job={job} />}
        {tab === "log" && <JobHistory path={path} />}
        {tab === "about" && (
          <About job={job} wiring={wiring ?? null} isArc={standing?.isArc ?? false} />
        )}
      </div>
    </>
  );
}

/** The lots that do not progress, which the state of the latest run does not show. */
function StuckLots({ job }: { job: Schemas["Job"] }) {
  const work = useGet("/api/v1/standing", {}).data?.work.find(
    (each) => each.namespace === job.namespace && each.job === job.name,
  );
  const parts = [
    { state: "HELD", lots: work?.held ?? 0, word: "on hold" },
    { state: "RETRYABLE", lots: work?.retryable ?? 0, word: "to retry later" },
  ];
  return (
    <>
      {parts
        .filter(({ lots }) => lots > 0)
        .map(({ state, lots, word }) => (
          <Link key={state} to={jobAddress(job.id, { tab: "lots", work: state })}>
            <Status of={state} label={`${plural(lots, "lot")} ${word}`} />
          </Link>
        ))}
    </>
  );
}

function WiringSummary({ job }: { job: Schemas["Job"] }) {
  const few = (ids: readonly Schemas["EntityId"][]) => (
    <>
      {ids.slice(0, 3).map((id, at) => (
        <span key={`${id.namespace}/${id.name}`}>
          {at > 0 && ", "}
          <DatasetLink of={id} />
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
  const result = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/versions", {
    path: { namespace: job.namespace, job: job.name },
    query: { limit: 200 },
  });
  const names = (value: unknown) =>
    Array.isArray(value) ? value.map((each: { name?: string }) => each.name).join(", ") : "";
  return (
    <Async of={result}>
      {(value) =>
        value.versions.length === 0 ? (
          <EmptyState icon="gear" title="No version yet" />
        ) : (
          <Panel
            title="Versions"
            aside={`${value.totalCount} in all, by inputs, outputs and code location`}
          >
            <Rows
              of={value.versions}
              label="versions"
              columns={[
                {
                  title: "version",
                  cell: (each) => <span className="mono">{each.version.slice(0, 8)}</span>,
                  width: "90px",
                },
                { title: "reads", cell: (each) => names(each.inputs), width: "minmax(6rem, 1fr)" },
                {
                  title: "writes",
                  cell: (each) => names(each.outputs),
                  width: "minmax(6rem, 1fr)",
                },
                {
                  title: "latest run",
                  cell: (each) => each.latestRun && <Status of={each.latestRun.state} />,
                  width: "116px",
                },
                { title: "made", cell: (each) => <Time at={each.createdAt} />, width: "100px" },
              ]}
            />
          </Panel>
        )
      }
    </Async>
  );
}

function JobHistory({ path }: { path: { namespace: string; job: string } }) {
  const log = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", {
    path,
    query: { limit: 500 },
  });
  return <Async of={log}>{(value) => <LogTable entries={value.entries} />}</Async>;
}

function About({
  job,
  wiring,
  isArc,
}: {
  job: Schemas["Job"];
  wiring: Schemas["Wiring"] | null;
  isArc: boolean;
}) {
  const arc = useGet(
    "/api/v1/namespaces/{namespace}/arcs/{arc}",
    isArc ? { path: { namespace: job.namespace, arc: job.name } } : null,
  ).data;
  const sql = sqlOf(job.facets);
  return (
    <>
      <Panel title="Details">
        <div className="body">
          <Facts
            of={[
              ["Kind", job.type.toLowerCase()],
              ["Created", <Time at={job.createdAt} full />],
              ["Changed", <Time at={job.updatedAt} full />],
              ["Part of", job.parentJobName ?? "none"],
              ["Code", job.location ? <span className="uri">{job.location}</span> : "not reported"],
              [
                "Tries",
                wiring
                  ? `${wiring.triesMax}, ${span(wiring.backOffSeconds)} apart at first`
                  : "not set",
              ],
              ["Lease", wiring ? span(wiring.leaseSeconds) : "none"],
            ]}
          />
        </div>
      </Panel>
      {arc && (
        <Panel title="Declaration of the arc">
          <Json
            value={{
              inputs: arc.inputs,
              outputs: arc.outputs,
              workload: arc.workload,
              parts: arc.parts,
              retry: arc.retry,
              runningMax: arc.runningMax,
              onEmpty: arc.onEmpty,
            }}
          />
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
