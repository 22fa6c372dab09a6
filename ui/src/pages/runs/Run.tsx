/** One run: how it went, its family over time, what it read and wrote, what was told about it. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetName, JobName, RunName, WorkName } from "../../kit/Names";
import { Facts, Json, PageHead, Panel, Tabs } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Lasted, Time } from "../../kit/Time";
import { jobNode, lineagePlace, workPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import { LogTable } from "../datasets/Lot";
import { lotOf, traceOf } from "./facets";
import { Gantt } from "./Gantt";
import "../jobs/jobs.css";

export default function Run({ id = "" }: { id?: string }) {
  const found = useGet("/api/v1/jobs/runs/{run}", { path: { run: id } });
  return <Shown of={found}>{(run) => <Whole run={run} />}</Shown>;
}

function Whole({ run }: { run: Schemas["Run"] }) {
  const [query] = useQuery();
  const tab = query.get("tab") ?? "run";
  const lot = lotOf(run.facets);
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="play" size={14} /> Run of <JobName of={run.job} />
          </>
        }
        title={<span className="mono">{run.id}</span>}
        copies={run.id}
        actions={
          <>
            {lot && (
              <ButtonLink to={workPlace(run.job, lot)} icon="file">
                Its lot
              </ButtonLink>
            )}
            <ButtonLink to={lineagePlace(jobNode(run.job))} icon="graph">
              Lineage
            </ButtonLink>
          </>
        }
      >
        <Status of={run.state} />
        <span>
          began <Time at={run.startedAt} />
        </span>
        <span>
          took <Lasted from={run.startedAt} to={run.endedAt} />
        </span>
      </PageHead>
      <Tabs
        tabs={[
          { id: "run", label: "Run" },
          { id: "facets", label: "Facets" },
          { id: "events", label: "Events" },
        ]}
      />
      <div className="stack">
        {tab === "run" && <Overview run={run} lot={lot} />}
        {tab === "facets" && <FacetsOf run={run} />}
        {tab === "events" && <Events run={run} />}
      </div>
    </>
  );
}

function Overview({ run, lot }: { run: Schemas["Run"]; lot: string | null }) {
  const log = useGet("/api/v1/jobs/runs/{run}/log", { path: { run: run.id }, query: { limit: 200 } }).value?.entries ?? [];
  // A claim that failed says why in its history.
  const error = run.cause ?? log.find((entry) => entry.action === "fail")?.why;
  const trace = traceOf(run.facets);
  return (
    <>
      {error && (
        <div className="trouble tone-bad" role="note">
          <Icon name="cross" />
          <div>
            <strong>Why it failed</strong>
            <p>{error}</p>
            {trace && <pre>{trace}</pre>}
          </div>
        </div>
      )}
      <Gantt run={run} />
      <div className="grid two">
        <Versions title="Read" versions={run.inputDatasetVersions} none="It has read nothing that we know of." />
        <Versions title="Wrote" versions={run.outputDatasetVersions} none="It has written nothing that we know of." />
      </div>
      <Panel title="Times">
        <div className="body">
          <Facts
            of={[
              ["Heard of", <Time at={run.createdAt} full />],
              ["Began", <Time at={run.startedAt} full />],
              ["Ended", run.endedAt && <Time at={run.endedAt} full />],
              ["Nominal time", run.nominalStartTime && <Time at={run.nominalStartTime} full />],
              ["Lot", lot && <WorkName job={run.job} lot={lot} />],
              ["Part of", run.parent && <RunName of={run.parent.runId} />],
              ["Job version", <span className="mono">{run.jobVersion?.version.slice(0, 8)}</span>],
            ]}
          />
        </div>
      </Panel>
      {log.length > 0 && <LogTable entries={log} />}
    </>
  );
}

function Versions({ title, versions, none }: { title: string; versions: readonly Schemas["RunDatasetVersion"][]; none: string }) {
  return (
    <Panel title={title}>
      {versions.length === 0 ? (
        <Empty icon="table" title={none} />
      ) : (
        <Rows
          of={versions}
          label={title}
          rows={10}
          columns={[
            { title: "dataset", cell: (each) => <DatasetName of={each.datasetVersionId} whole />, width: "minmax(9rem, 1fr)" },
            { title: "version", cell: (each) => `V${each.number ?? "?"}`, width: "70px", end: true },
          ]}
        />
      )}
    </Panel>
  );
}

function FacetsOf({ run }: { run: Schemas["Run"] }) {
  const path = { run: run.id };
  const ofRun = useGet("/api/v1/jobs/runs/{run}/facets", { path, query: { type: "run" } });
  const ofJob = useGet("/api/v1/jobs/runs/{run}/facets", { path, query: { type: "job" } });
  return (
    <>
      <Panel title="Facets of the run">
        <Shown of={ofRun}>{(value) => <Json value={value.facets} />}</Shown>
      </Panel>
      <Panel title="Facets of its job, as the run told them">
        <Shown of={ofJob}>{(value) => <Json value={value.facets} />}</Shown>
      </Panel>
    </>
  );
}

interface RunEvent {
  readonly eventTime?: string;
  readonly eventType?: string;
}

function Events({ run }: { run: Schemas["Run"] }) {
  const events = useGet("/api/v1/jobs/runs/{run}/events", { path: { run: run.id }, query: { limit: 100 } });
  return (
    <Shown of={events}>
      {(value) =>
        value.events.length === 0 ? (
          <Empty icon="list" title="No event was received about this run">
            It was made here, by a claim.
          </Empty>
        ) : (
          <>
            {value.events.map((event, at) => {
              const told = event as RunEvent;
              return (
                <Panel key={`${at} ${told.eventTime}`} title={told.eventType ?? "event"} aside={<Time at={told.eventTime} full />}>
                  <Json value={event} />
                </Panel>
              );
            })}
          </>
        )
      }
    </Shown>
  );
}
