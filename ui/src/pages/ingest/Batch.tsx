/** A batch: the progress of its jobs by stage, and its reports. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Share } from "../../kit/Bars";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { Pager } from "../../kit/Pager";
import { Facts, PageHead, Panel, Tabs } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { ENDED_STATES, type IngestState, UNREPORTED_STATES } from "../../kit/states";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { count, plural, size, span } from "../../kit/format";
import { lotAddress } from "../../router/addresses";
import { address, useSearchParams } from "../../router/router";
import { BatchActions } from "./actions";
import { Flow } from "./Flow";
import "./ingest.css";
import { jobColumns } from "./IngestJobs";
import { batchAddress, CollectionLink, IngestJobLink, ingestJobAddress } from "./links";
import { bytesIn, jobsIn, rate, sharesOf, type Tally } from "./tally";

type Batch = Schemas["ShownBatch"];
const PART = 200;

export default function Batch({ id = "" }: { id?: string }) {
  const result = useGet("/api/v1/ingest/batches/{batch}", { path: { batch: id } });
  return <Async of={result}>{(batch) => <BatchDetails batch={batch} />}</Async>;
}

function BatchDetails({ batch }: { batch: Batch }) {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "jobs";
  const tally: Tally = batch.tally ?? {};
  const collection = useGet("/api/v1/ingest/collections", {}).data?.collections.find(
    (each) => each.name === batch.collection,
  );
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="inbox" size={14} /> Batch of <CollectionLink of={batch.collection} />
          </>
        }
        title={<span className="mono">{batch.id}</span>}
        copies={batch.id}
        actions={
          <>
            {collection?.lots === "batch" && batch.status !== "pending" && (
              <ButtonLink
                to={lotAddress(
                  { namespace: collection.namespace ?? "default", name: collection.dataset },
                  batch.id,
                )}
                icon="file"
              >
                Open lot
              </ButtonLink>
            )}
            {ENDED_STATES.includes(batch.status) && (
              <ButtonLink to={address(["replay", "new"], { batch: batch.id })} icon="replay">
                Replay
              </ButtonLink>
            )}
            <BatchActions batch={batch} tally={tally} />
          </>
        }
      >
        <Status of={batch.status} />
        <span>
          submitted <Time at={batch.submittedAt} /> by {batch.submitter}
        </span>
        <span>{batch.payloadName}</span>
      </PageHead>
      {batch.message && (
        <div
          className={`trouble stopped-note tone-${batch.status === "held" ? "held" : "bad"}`}
          role="note"
        >
          <Icon name={batch.status === "held" ? "hand" : "alert"} />
          <p>{batch.message}</p>
        </div>
      )}
      <Flow
        tally={tally}
        to={(state) => batchAddress(batch.id, { status: state })}
        chosen={tab === "jobs" ? query.get("status") : null}
      />
      <Tabs
        tabs={[
          { id: "jobs", label: "Jobs", count: batch.jobs },
          { id: "report", label: "Report" },
          { id: "about", label: "About" },
        ]}
      />
      <div className="stack">
        {tab === "jobs" && batch.jobs > 0 && <Rate batch={batch} tally={tally} />}
        {tab === "jobs" && <BatchJobs batch={batch} />}
        {tab === "report" && <Report batch={batch} />}
        {tab === "about" && <About batch={batch} />}
      </div>
    </>
  );
}

function Rate({ batch, tally }: { batch: Batch; tally: Tally }) {
  const now = useNow();
  const isOver = ENDED_STATES.includes(batch.status);
  const seconds =
    ((isOver ? Date.parse(batch.lastModified) : now) - Date.parse(batch.submittedAt)) / 1000;
  const jobs = rate(jobsIn(tally, "completed"), seconds);
  const bytes = rate(bytesIn(tally, "completed"), seconds);
  const total = Object.values(tally).reduce((sum, each) => sum + each.bytes, 0);
  return (
    <Panel
      title="Progress"
      aside={isOver ? `took ${span(seconds)}` : `for ${span(Math.max(0, seconds))}`}
    >
      <div className="body stack">
        <Share parts={sharesOf(tally)} of={batch.jobs} />
        <Facts
          of={[
            ["Jobs completed", `${count(jobsIn(tally, "completed"))} of ${count(batch.jobs)}`],
            ["Bytes stored", `${size(bytesIn(tally, "completed"))} of ${size(total)}`],
            ["Jobs", jobs && `${jobs[0].toFixed(jobs[0] < 10 ? 1 : 0)} a ${unit(jobs[1])}`],
            ["Bytes", bytes && `${size(bytes[0])} a ${unit(bytes[1])}`],
          ]}
        />
      </div>
    </Panel>
  );
}

const unit = (short: "s" | "min" | "h"): string =>
  ({ s: "second", min: "minute", h: "hour" })[short];

function BatchJobs({ batch }: { batch: Batch }) {
  const [query, setQuery] = useSearchParams();
  const status = query.get("status") as IngestState | null;
  const after = query.get("after");
  const result = useGet(
    "/api/v1/ingest/batches/{batch}/jobs",
    {
      path: { batch: batch.id },
      query: { limit: PART, ...(status ? { status } : {}), ...(after ? { after } : {}) },
    },
    { keep: true },
  );
  return (
    <Async of={result}>
      {({ jobs }) =>
        jobs.length === 0 ? (
          <EmptyState
            icon="inbox"
            title={
              status
                ? `No job of this batch is ${status}`
                : batch.jobs > 0
                  ? "The jobs of this batch were deleted"
                  : "No jobs yet"
            }
          >
            {status
              ? "Choose another stage above."
              : batch.jobs > 0
                ? "Update the report to end the batch."
                : "A daemon reads the payload when its turn comes. Start one with: penstock ingest start"}
          </EmptyState>
        ) : (
          <Panel
            title={status ? `Jobs that are ${status}` : "Jobs"}
            aside={
              status ? (
                <ButtonLink to={batchAddress(batch.id)}>Show all</ButtonLink>
              ) : (
                plural(batch.jobs, "job")
              )
            }
          >
            <Rows
              of={jobs}
              label="jobs of the batch"
              columns={jobColumns({ batch: false })}
              to={(job) => ingestJobAddress(job.id)}
              rows={14}
            />
            <Pager
              first="First"
              next="Next"
              onFirst={after ? () => setQuery({ after: null }) : null}
              onNext={
                jobs.length < PART
                  ? null
                  : () => setQuery({ after: jobs.at(-1)?.id }, { push: true })
              }
            />
          </Panel>
        )
      }
    </Async>
  );
}

function Report({ batch }: { batch: Batch }) {
  const isReported = !UNREPORTED_STATES.includes(batch.status);
  const result = useGet(
    "/api/v1/ingest/batches/{batch}/report",
    isReported ? { path: { batch: batch.id } } : null,
  );
  if (!isReported) {
    return (
      <EmptyState icon="file" title="No report yet">
        The batch is {batch.status}. It is reported when its jobs have ended.
      </EmptyState>
    );
  }
  return (
    <Async of={result}>
      {(report) => (
        <>
          <Panel
            title={`Report ${report.number}`}
            aside={
              <>
                {report.kind === "update" ? "an update" : "the first"},{" "}
                <Time at={report.lastModified} />
              </>
            }
          >
            <div className="body">
              <Facts
                of={[
                  ["Successful", count(report.successfulJobs.length)],
                  ["Failed", few(report.failedJobs)],
                  ["Newly successful", few(report.newlySuccessful)],
                  ["Still open", few(report.stillOpen)],
                  ["Deleted", few(report.gone)],
                  ["Sent to", report.submitter],
                ]}
              />
            </div>
          </Panel>
          <Panel title="Text of the report">
            <pre className="letter" tabIndex={0}>
              {report.text}
            </pre>
          </Panel>
        </>
      )}
    </Async>
  );
}

function few(jobs: readonly string[]) {
  if (jobs.length === 0) return "none";
  return (
    <>
      {jobs.slice(0, 5).map((job) => (
        <div key={job}>
          <IngestJobLink of={job} />
        </div>
      ))}
      {jobs.length > 5 && `and ${count(jobs.length - 5)} more`}
    </>
  );
}

function About({ batch }: { batch: Batch }) {
  return (
    <Panel title="Details">
      <div className="body">
        <Facts
          of={[
            ["Submitted", <Time at={batch.submittedAt} full />],
            ["Changed", <Time at={batch.lastModified} full />],
            ["By", batch.submitter],
            ["Payload", <span className="mono uri">{batch.payloadUrl}</span>],
            ["Kind", batch.payloadType.replaceAll("_", " ")],
            ["Mode", batch.mode],
            ["Key", batch.key],
            ["Daemon", batch.lockedBy ?? "none"],
          ]}
        />
      </div>
    </Panel>
  );
}
