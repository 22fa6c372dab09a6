/** One batch: how far its jobs are, stage by stage, and what its depositor was told. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Share } from "../../kit/Bars";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { Pager } from "../../kit/Pager";
import { Facts, PageHead, Panel, Tabs } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { count, plural, size, span } from "../../kit/words";
import { lotPlace } from "../../router/places";
import { address, useQuery } from "../../router/router";
import { BatchActions } from "./actions";
import { Flow } from "./Flow";
import "./ingest.css";
import { jobColumns } from "./IngestJobs";
import { batchPlace, CollectionName, IngestJobName, ingestJobPlace } from "./names";
import { bytesIn, type JobState, jobsIn, rate, sharesOf, type Tally } from "./stages";

type Batch = Schemas["ShownBatch"];
const PART = 200;
const ENDED = new Set(["completed", "failed", "deleted"]);
const UNREPORTED = new Set(["pending", "held", "processing"]);

export default function Batch({ id = "" }: { id?: string }) {
  const found = useGet("/api/v1/ingest/batches/{batch}", { path: { batch: id } });
  return <Shown of={found}>{(batch) => <Whole batch={batch} />}</Shown>;
}

function Whole({ batch }: { batch: Batch }) {
  const [query] = useQuery();
  const tab = query.get("tab") ?? "jobs";
  const tally: Tally = batch.tally ?? {};
  const collection = useGet("/api/v1/ingest/collections", {}).value?.collections.find((each) => each.name === batch.collection);
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="inbox" size={14} /> Batch of <CollectionName of={batch.collection} />
          </>
        }
        title={<span className="mono">{batch.id}</span>}
        copies={batch.id}
        actions={
          <>
            {collection?.lots === "batch" && batch.status !== "pending" && (
              <ButtonLink to={lotPlace({ namespace: collection.namespace ?? "default", name: collection.dataset }, batch.id)} icon="file">
                Its lot
              </ButtonLink>
            )}
            {ENDED.has(batch.status) && (
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
        <div className={`trouble stopped-note tone-${batch.status === "held" ? "held" : "bad"}`} role="note">
          <Icon name={batch.status === "held" ? "hand" : "alert"} />
          <p>{batch.message}</p>
        </div>
      )}
      <Flow tally={tally} to={(state) => batchPlace(batch.id, { status: state })} chosen={tab === "jobs" ? query.get("status") : null} />
      <Tabs
        tabs={[
          { id: "jobs", label: "Jobs", count: batch.jobs },
          { id: "report", label: "Report" },
          { id: "about", label: "About" },
        ]}
      />
      <div className="stack">
        {tab === "jobs" && batch.jobs > 0 && <Rate batch={batch} tally={tally} />}
        {tab === "jobs" && <Jobs batch={batch} />}
        {tab === "report" && <Report batch={batch} />}
        {tab === "about" && <About batch={batch} />}
      </div>
    </>
  );
}

function Rate({ batch, tally }: { batch: Batch; tally: Tally }) {
  const now = useNow();
  const isOver = ENDED.has(batch.status);
  const seconds = ((isOver ? Date.parse(batch.lastModified) : now) - Date.parse(batch.submittedAt)) / 1000;
  const jobs = rate(jobsIn(tally, "completed"), seconds);
  const bytes = rate(bytesIn(tally, "completed"), seconds);
  const total = Object.values(tally).reduce((sum, each) => sum + each.bytes, 0);
  return (
    <Panel title="How far it is" aside={isOver ? `took ${span(seconds)}` : `for ${span(Math.max(0, seconds))}`}>
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

const unit = (short: "s" | "min" | "h"): string => ({ s: "second", min: "minute", h: "hour" })[short];

function Jobs({ batch }: { batch: Batch }) {
  const [query, setQuery] = useQuery();
  const status = query.get("status") as JobState | null;
  const after = query.get("after");
  const found = useGet("/api/v1/ingest/batches/{batch}/jobs", { path: { batch: batch.id }, query: { limit: PART, ...(status ? { status } : {}), ...(after ? { after } : {}) } }, { keep: true });
  return (
    <Shown of={found}>
      {({ jobs }) =>
        jobs.length === 0 ? (
          <Empty icon="inbox" title={status ? `No job of this batch is ${status}` : batch.jobs > 0 ? "Its jobs were deleted" : "It has no jobs yet"}>
            {status ? "Choose another stage above." : batch.jobs > 0 ? "To end it, have it reported anew." : "Its payload is read when its turn comes; a daemon must run: penstock ingest start"}
          </Empty>
        ) : (
          <Panel title={status ? `Jobs that are ${status}` : "Jobs"} aside={status ? <ButtonLink to={batchPlace(batch.id)}>Show all</ButtonLink> : plural(batch.jobs, "job")}>
            <Rows of={jobs} label="jobs of the batch" columns={jobColumns({ batch: false })} to={(job) => ingestJobPlace(job.id)} rows={14} />
            <Pager first="First" next="Next" onFirst={after ? () => setQuery({ after: null }) : null} onNext={jobs.length < PART ? null : () => setQuery({ after: jobs.at(-1)?.id }, { push: true })} />
          </Panel>
        )
      }
    </Shown>
  );
}

function Report({ batch }: { batch: Batch }) {
  const isReported = !UNREPORTED.has(batch.status);
  const found = useGet("/api/v1/ingest/batches/{batch}/report", isReported ? { path: { batch: batch.id } } : null);
  if (!isReported) {
    return (
      <Empty icon="file" title="There is no report yet">
        The batch is {batch.status}; it is reported once its jobs have ended.
      </Empty>
    );
  }
  return (
    <Shown of={found}>
      {(report) => (
        <>
          <Panel title={`Report ${report.number}`} aside={<>{report.kind === "update" ? "an update" : "the first"}, <Time at={report.lastModified} /></>}>
            <div className="body">
              <Facts
                of={[
                  ["Successful", count(report.successfulJobs.length)],
                  ["Failed", few(report.failedJobs)],
                  ["Newly successful", few(report.newlySuccessful)],
                  ["Still open", few(report.stillOpen)],
                  ["Gone", few(report.gone)],
                  ["Told to", report.submitter],
                ]}
              />
            </div>
          </Panel>
          <Panel title="As a letter says it">
            <pre className="letter" tabIndex={0}>
              {report.text}
            </pre>
          </Panel>
        </>
      )}
    </Shown>
  );
}

function few(jobs: readonly string[]) {
  if (jobs.length === 0) return "none";
  return (
    <>
      {jobs.slice(0, 5).map((job) => (
        <div key={job}>
          <IngestJobName of={job} />
        </div>
      ))}
      {jobs.length > 5 && `and ${count(jobs.length - 5)} more`}
    </>
  );
}

function About({ batch }: { batch: Batch }) {
  return (
    <Panel title="What is known">
      <div className="body">
        <Facts
          of={[
            ["Submitted", <Time at={batch.submittedAt} full />],
            ["Changed", <Time at={batch.lastModified} full />],
            ["By", batch.submitter],
            ["Payload", <span className="mono uri">{batch.payloadUrl}</span>],
            ["Kind", batch.payloadType.replaceAll("_", " ")],
            ["What it does", batch.mode],
            ["Key", batch.key],
            ["A daemon is at it", batch.lockedBy ?? "no"],
          ]}
        />
      </div>
    </Panel>
  );
}
