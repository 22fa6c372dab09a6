/** A run: its state, its relatives, its inputs and outputs, its events. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetLink, JobLink, RunLink, WorkLink } from "../../kit/links";
import { Facts, Json, PageHead, Panel, Tabs } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Duration, Time } from "../../kit/Time";
import { jobNode, lineageAddress, workAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { LogTable } from "../datasets/Lot";
import { lotOf, traceOf } from "./facets";
import { Gantt } from "./Gantt";
import "../jobs/jobs.css";

export default function Run({ id = "" }: { id?: string }) {
  const result = useGet("/api/v1/jobs/runs/{run}", { path: { run: id } });
  return <Async of={result}>{(run) => <RunDetails run={run} />}</Async>;
}

function RunDetails({ run }: { run: Schemas["Run"] }) {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "run";
  const lot = lotOf(run.facets);
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="play" size={14} /> Run of <JobLink of={run.job} />
          </>
        }
        title={<span className="mono">{run.id}</span>}
        copies={run.id}
        actions={
          <>
            {lot && (
              <ButtonLink to={workAddress(run.job, lot)} icon="file">
                Open lot
              </ButtonLink>
            )}
            <ButtonLink to={lineageAddress(jobNode(run.job))} icon="graph">
              Lineage
            </ButtonLink>
          </>
        }
      >
        <Status of={run.state} />
        <span>
          started <Time at={run.startedAt} />
        </span>
        <span>
          took <Duration from={run.startedAt} to={run.endedAt} />
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
        {tab === "run" && <RunSummary run={run} lot={lot} />}
        {tab === "facets" && <RunFacets run={run} />}
        {tab === "events" && <Events run={run} />}
      </div>
    </>
  );
}

function RunSummary({ run, lot }: { run: Schemas["Run"]; lot: string | null }) {
  const log =
    useGet("/api/v1/jobs/runs/{run}/log", { path: { run: run.id }, query: { limit: 200 } }).data
      ?.entries ?? [];
  // The history has the cause of a failed claim.
  const error = run.cause ?? log.find((entry) => entry.action === "fail")?.why;
  const trace = traceOf(run.facets);
  return (
    <>
      {error && (
        <div className="trouble tone-bad" role="note">
          <Icon name="cross" />
          <div>
            <strong>Cause of the failure</strong>
            <p>{error}</p>
            {trace && <pre>{trace}</pre>}
          </div>
        </div>
      )}
      <Gantt run={run} />
      <div className="grid two">
        <Versions title="Read" versions={run.inputDatasetVersions} none="No known inputs" />
        <Versions title="Wrote" versions={run.outputDatasetVersions} none="No known outputs" />
      </div>
      <Panel title="Times">
        <div className="body">
          <Facts
            of={[
              ["Reported", <Time at={run.createdAt} full />],
              ["Started", <Time at={run.startedAt} full />],
              ["Ended", run.endedAt && <Time at={run.endedAt} full />],
              ["Nominal time", run.nominalStartTime && <Time at={run.nominalStartTime} full />],
              ["Lot", lot && <WorkLink job={run.job} lot={lot} />],
              ["Part of", run.parent && <RunLink of={run.parent.runId} />],
              ["Job version", <span className="mono">{run.jobVersion?.version.slice(0, 8)}</span>],
            ]}
          />
        </div>
      </Panel>
      {log.length > 0 && <LogTable entries={log} />}
    </>
  );
}

function Versions({
  title,
  versions,
  none,
}: {
  title: string;
  versions: readonly Schemas["RunDatasetVersion"][];
  none: string;
}) {
  return (
    <Panel title={title}>
      {versions.length === 0 ? (
        <EmptyState icon="table" title={none} />
      ) : (
        <Rows
          of={versions}
          label={title}
          rows={10}
          columns={[
            {
              title: "dataset",
              cell: (each) => <DatasetLink of={each.datasetVersionId} whole />,
              width: "minmax(9rem, 1fr)",
            },
            {
              title: "version",
              cell: (each) => `V${each.number ?? "?"}`,
              width: "70px",
              end: true,
            },
          ]}
        />
      )}
    </Panel>
  );
}

function RunFacets({ run }: { run: Schemas["Run"] }) {
  const path = { run: run.id };
  const ofRun = useGet("/api/v1/jobs/runs/{run}/facets", { path, query: { type: "run" } });
  const ofJob = useGet("/api/v1/jobs/runs/{run}/facets", { path, query: { type: "job" } });
  return (
    <>
      <Panel title="Facets of the run">
        <Async of={ofRun}>{(value) => <Json value={value.facets} />}</Async>
      </Panel>
      <Panel title="Facets of its job, from this run">
        <Async of={ofJob}>{(value) => <Json value={value.facets} />}</Async>
      </Panel>
    </>
  );
}

interface RunEvent {
  readonly eventTime?: string;
  readonly eventType?: string;
}

function Events({ run }: { run: Schemas["Run"] }) {
  const events = useGet("/api/v1/jobs/runs/{run}/events", {
    path: { run: run.id },
    query: { limit: 100 },
  });
  return (
    <Async of={events}>
      {(value) =>
        value.events.length === 0 ? (
          <EmptyState icon="list" title="No event">
            A claim on this server created the run.
          </EmptyState>
        ) : (
          <>
            {value.events.map((event, at) => {
              const fields = event as RunEvent;
              return (
                <Panel
                  key={`${at} ${fields.eventTime}`}
                  title={fields.eventType ?? "event"}
                  aside={<Time at={fields.eventTime} full />}
                >
                  <Json value={event} />
                </Panel>
              );
            })}
          </>
        )
      }
    </Async>
  );
}
