/** The actions on the ingest queue, a collection, a batch or an ingest job. */
import { call, type Schemas } from "../../api/client";
import { ActionButton } from "../../kit/ActionButton";
import { plural } from "../../kit/format";
import { ACTIVE_STAGES } from "../../kit/states";
import { navigate } from "../../router/router";
import { batchAddress } from "./links";
import { PriorityButton } from "./PriorityButton";
import { jobsIn, openJobs, type Tally } from "./tally";

type Batch = Schemas["ShownBatch"];
type Job = Schemas["ShownIngestJob"];

const COLLECTION = "/api/v1/ingest/collections/{collection}";
const BATCH = "/api/v1/ingest/batches/{batch}";
const JOB = "/api/v1/ingest/jobs/{ingest_job}";

/** Hold the whole queue, or release its hold. */
export function HoldQueueButton({ isHeld }: { isHeld: boolean }) {
  return isHeld ? (
    <ActionButton
      needs="admin everywhere"
      icon="play"
      kind="primary"
      title="Release the hold on the queue?"
      description="Daemons take up batches and jobs again, in their order."
      verb="Release hold"
      send={(why) => call("post", "/api/v1/ingest/queue/release", { body: { why } })}
      done="The hold on the queue is released."
    >
      Release queue
    </ActionButton>
  ) : (
    <ActionButton
      needs="admin everywhere"
      icon="hand"
      title="Hold the whole queue?"
      description="No daemon takes up a batch or a job of any collection until the hold is released. A running job finishes its current stage. New deposits are accepted and wait."
      verb="Hold queue"
      danger
      send={(why) => call("post", "/api/v1/ingest/queue/hold", { body: { why } })}
      done="The queue is on hold."
    >
      Hold queue
    </ActionButton>
  );
}

/** Release every held batch and job, of one collection or of all. */
export function ReleaseHoldsButton({ collection }: { collection?: string }) {
  return (
    <ActionButton
      icon="play"
      title={`Release all holds in ${collection ?? "every collection that is not held"}?`}
      description="Every held batch and job becomes pending, and runs when its turn comes."
      verb="Release holds"
      send={(why) =>
        call("post", "/api/v1/ingest/queue/release-held", {
          body: { why, collection: collection ?? null },
        })
      }
      done={({ released }) =>
        released
          ? `${plural(released, "held batch or job is", "held batches and jobs are")} released.`
          : "Nothing was on hold."
      }
    >
      Release all holds
    </ActionButton>
  );
}

/** Hold a collection, or release its hold. */
export function HoldCollectionButton({ name, isHeld }: { name: string; isHeld: boolean }) {
  const path = { collection: name };
  return isHeld ? (
    <ActionButton
      icon="play"
      title={`Release the hold on collection ${name}?`}
      description="Daemons take up its new batches again. Batches and jobs that it held stay on hold: release them with “Release all holds” after this."
      verb="Release hold"
      send={(why) => call("post", `${COLLECTION}/release`, { path, body: { why } })}
      done={`The hold on ${name} is released.`}
    >
      Release hold
    </ActionButton>
  ) : (
    <ActionButton
      icon="hand"
      title={`Hold collection ${name}?`}
      description="Its batches and jobs that have not started are held when their turn comes, until they are released. Running jobs continue."
      verb="Hold collection"
      send={(why) => call("post", `${COLLECTION}/hold`, { path, body: { why } })}
      done={`${name} is on hold.`}
    >
      Hold
    </ActionButton>
  );
}

export function DeleteCollectionButton({ name }: { name: string }) {
  async function send() {
    const answer = await call("delete", COLLECTION, { path: { collection: name } });
    if (answer.ok) navigate("/ingest?tab=collections");
    return answer;
  }
  return (
    <ActionButton
      icon="cross"
      kind="danger"
      title={`Delete collection ${name}?`}
      description="Its profile is deleted, and it accepts no more submissions. Its stored objects and its dataset stay. The server refuses while a batch of it is open. This cannot be undone."
      verb="Delete collection"
      danger
      reason="none"
      typed={name}
      send={send}
      done={`${name} is deleted.`}
    >
      Delete
    </ActionButton>
  );
}

/** The actions on a batch in its current state. */
export function BatchActions({ batch, tally }: { batch: Batch; tally: Tally }) {
  const held = jobsIn(tally, "held");
  const failed = jobsIn(tally, "failed");
  const pending = jobsIn(tally, "pending");
  const { status } = batch;
  const isStopped = held > 0 && openJobs(tally) === 0;
  return (
    <>
      {status === "failed" && batch.jobs === 0 && <ResumeUnreadBatch batch={batch} />}
      {failed > 0 && <ResumeFailedJobs batch={batch} failed={failed} />}
      {(status === "held" || held > 0) && <ReleaseBatchButton batch={batch} held={held} />}
      {(status === "pending" || (status === "processing" && pending > 0)) && (
        <HoldBatchButton batch={batch} pending={pending} />
      )}
      {status === "failed" && batch.jobs > 0 && <UpdateReportButton batch={batch} />}
      {openJobs(tally) + held > 0 && (
        <PriorityButton
          subject={`the open jobs of ${batch.id}`}
          send={(priority, why) =>
            call("post", `${BATCH}/priority`, {
              path: { batch: batch.id },
              body: { priority, why },
            })
          }
          done={({ changed }, priority) =>
            `${plural(changed, "job has", "jobs have")} priority ${priority}.`
          }
        />
      )}
      {(status === "failed" || status === "held" || (status === "processing" && isStopped)) && (
        <DeleteBatchButton batch={batch} />
      )}
    </>
  );
}

/** Resume a batch whose payload could not be read. */
function ResumeUnreadBatch({ batch: { id } }: { batch: Batch }) {
  return (
    <ActionButton
      icon="play"
      kind="primary"
      title={`Resume ${id}?`}
      description="Its payload could not be read. The batch becomes pending, and a daemon reads the payload again."
      verb="Resume"
      send={(why) => call("post", `${BATCH}/resume`, { path: { batch: id }, body: { why } })}
      done={`${id} is pending again.`}
    >
      Resume
    </ActionButton>
  );
}

function ResumeFailedJobs({ batch: { id }, failed }: { batch: Batch; failed: number }) {
  return (
    <ActionButton
      icon="play"
      kind="primary"
      title={`Resume the failed jobs of ${id}?`}
      description={`${plural(failed, "failed job continues", "failed jobs continue")} after the last stage that succeeded. Remove the cause of the failure first. A job with a bad payload cannot continue: submit it again.`}
      verb="Resume"
      send={(why) => call("post", `${BATCH}/resume`, { path: { batch: id }, body: { why } })}
      done={({ resumed }) => resumeText(resumed)}
    >
      Resume failed
    </ActionButton>
  );
}

function resumeText(results: readonly Schemas["ResumedJob"][]): string {
  const resumed = results.filter((each) => each.stage).length;
  const refused = results.filter((each) => each.refused);
  const text = `${plural(resumed, "job continues", "jobs continue")}.`;
  const [first] = refused;
  return first ? `${text} ${refused.length} cannot: ${first.refused ?? ""}` : text;
}

function ReleaseBatchButton({ batch: { id, status }, held }: { batch: Batch; held: number }) {
  return (
    <ActionButton
      icon="play"
      title={`Release the hold on ${id}?`}
      description={
        status === "held"
          ? "The batch becomes pending, and runs when its turn comes."
          : `${plural(held, "held job becomes", "held jobs become")} pending, and run when their turn comes.`
      }
      verb="Release hold"
      send={(why) => call("post", `${BATCH}/release`, { path: { batch: id }, body: { why } })}
      done={`The hold on ${id} is released.`}
    >
      Release hold
    </ActionButton>
  );
}

function HoldBatchButton({ batch: { id, status }, pending }: { batch: Batch; pending: number }) {
  return (
    <ActionButton
      icon="hand"
      title={`Hold ${id}?`}
      description={
        status === "pending"
          ? "No daemon takes up the batch until the hold is released."
          : `${plural(pending, "job that has", "jobs that have")} not started wait until the hold is released; the others continue.`
      }
      verb="Hold batch"
      send={(why) => call("post", `${BATCH}/hold`, { path: { batch: id }, body: { why } })}
      done={(value) =>
        value.status === "held"
          ? `${id} is on hold.`
          : `${plural(jobsIn(value.tally ?? {}, "held"), "job is", "jobs are")} on hold.`
      }
    >
      Hold
    </ActionButton>
  );
}

function UpdateReportButton({ batch: { id } }: { batch: Batch }) {
  return (
    <ActionButton
      icon="file"
      title={`Update the report of ${id}?`}
      description="Its depositor gets another report with the current states of its jobs. If all have completed, the batch and its lot become complete."
      verb="Update report"
      send={(why) => call("post", `${BATCH}/update-report`, { path: { batch: id }, body: { why } })}
      done={`${id} gets another report.`}
    >
      Update report
    </ActionButton>
  );
}

function DeleteBatchButton({ batch }: { batch: Batch }) {
  async function send(why: string) {
    const query = { confirmed: true, why };
    const answer = await call("delete", BATCH, { path: { batch: batch.id }, query });
    if (answer.ok) navigate("/ingest");
    return answer;
  }
  return (
    <ActionButton
      icon="cross"
      kind="danger"
      title={`Delete ${batch.id}?`}
      description={`The batch, its ${plural(batch.jobs, "job")} and their working folders are deleted; its depositor gets no report. Objects that are already stored stay; the lot that was announced for it is removed. This cannot be undone.`}
      verb="Delete batch"
      danger
      reason="optional"
      typed={batch.id}
      send={send}
      done={`${batch.id} is deleted.`}
    >
      Delete
    </ActionButton>
  );
}

/** The actions on an ingest job in its current state. */
export function JobActions({ job }: { job: Job }) {
  const { status } = job;
  const isOpen = status !== "completed" && status !== "failed";
  const isActive = ACTIVE_STAGES.some((stage) => stage === status);
  return (
    <>
      {status === "failed" && job.resumesAt && <ResumeJobButton job={job} kind="primary" />}
      {status === "held" && <ReleaseJobButton job={job} />}
      {status === "pending" && <HoldJobButton job={job} />}
      {isOpen && (
        <PriorityButton
          subject={job.payloadName || job.id}
          now={job.priority}
          send={(priority, why) =>
            call("post", `${JOB}/priority`, {
              path: { ingest_job: job.id },
              body: { priority, why },
            })
          }
          done={(_, priority) => `${job.payloadName} has priority ${priority}.`}
        />
      )}
      {(status === "pending" || isActive) && <StopJobButton job={job} />}
      {(status === "failed" || status === "held") && <DeleteJobButton job={job} />}
    </>
  );
}

export function ResumeJobButton({ job, kind = "plain" }: { job: Job; kind?: "plain" | "primary" }) {
  return (
    <ActionButton
      icon="play"
      kind={kind}
      title={`Resume ${job.payloadName}?`}
      description={`The job continues with ${job.resumesAt ?? "nothing"}. Remove the cause of the failure first.`}
      verb="Resume"
      send={(why) => call("post", `${JOB}/resume`, { path: { ingest_job: job.id }, body: { why } })}
      done={({ status }) => `${job.payloadName} continues with ${status}.`}
    >
      Resume
    </ActionButton>
  );
}

function ReleaseJobButton({ job }: { job: Job }) {
  return (
    <ActionButton
      icon="play"
      title={`Release the hold on ${job.payloadName}?`}
      description="The job becomes pending, and runs when its turn comes."
      verb="Release hold"
      send={(why) =>
        call("post", `${JOB}/release`, { path: { ingest_job: job.id }, body: { why } })
      }
      done={`The hold on ${job.payloadName} is released.`}
    >
      Release hold
    </ActionButton>
  );
}

function HoldJobButton({ job }: { job: Job }) {
  return (
    <ActionButton
      icon="hand"
      title={`Hold ${job.payloadName}?`}
      description="No daemon takes up the job until the hold is released."
      verb="Hold job"
      send={(why) => call("post", `${JOB}/hold`, { path: { ingest_job: job.id }, body: { why } })}
      done={`${job.payloadName} is on hold.`}
    >
      Hold
    </ActionButton>
  );
}

function StopJobButton({ job }: { job: Job }) {
  return (
    <ActionButton
      icon="cross"
      kind="danger"
      title={`Stop ${job.payloadName}?`}
      description="The job fails at once. A daemon that works on it can change nothing any more. The job can be resumed after the last stage that succeeded, if there is one."
      verb="Stop job"
      danger
      send={(why) => call("post", `${JOB}/fail`, { path: { ingest_job: job.id }, body: { why } })}
      done={`${job.payloadName} is stopped.`}
    >
      Stop
    </ActionButton>
  );
}

function DeleteJobButton({ job }: { job: Job }) {
  async function send(why: string) {
    const query = { confirmed: true, why };
    const answer = await call("delete", JOB, { path: { ingest_job: job.id }, query });
    if (answer.ok) navigate(batchAddress(job.batch));
    return answer;
  }
  return (
    <ActionButton
      icon="cross"
      kind="danger"
      title={`Delete ${job.payloadName}?`}
      description="The job and its working folder are deleted. Unless its batch is completed, its depositor gets no report about it. This cannot be undone."
      verb="Delete job"
      danger
      reason="optional"
      typed={job.id}
      send={send}
      done={`${job.payloadName} is deleted.`}
    >
      Delete
    </ActionButton>
  );
}
