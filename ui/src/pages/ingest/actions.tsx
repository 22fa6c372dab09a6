/** What can be done with the queue, a collection, a batch or an ingest job. */
import { call, type Schemas } from "../../api/client";
import { Act } from "../../kit/Act";
import { plural } from "../../kit/words";
import { navigate } from "../../router/router";
import { Priority } from "./Priority";
import { jobsIn, openJobs, type Tally } from "./stages";

type Batch = Schemas["ShownBatch"];
type Job = Schemas["ShownIngestJob"];

/** Stops everything, or lets it go on. */
export function PauseQueue({ isHeld }: { isHeld: boolean }) {
  return isHeld ? (
    <Act needs="admin everywhere" icon="play" kind="primary" ask={{ title: "Let the queue go on?", says: "Batches and jobs are taken up again, in their order.", verb: "Let it go on", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/queue/release", { body: { why } })} done="The queue goes on.">
      Let the queue go on
    </Act>
  ) : (
    <Act needs="admin everywhere" icon="pause" ask={{ title: "Pause the whole queue?", says: "No batch and no job of any collection is taken up until it is let go. Jobs that are under way end the stage they are in. Deposits are still accepted, and wait.", verb: "Pause the queue", danger: true, reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/queue/hold", { body: { why } })} done="The queue is paused.">
      Pause the queue
    </Act>
  );
}

/** Lets every held batch and job go on, of one collection or of all. */
export function ReleaseHeld({ collection }: { collection?: string }) {
  const of = collection ?? "every collection that is not held";
  return (
    <Act
      icon="play"
      ask={{ title: `Release all that is held of ${of}?`, says: "Every held batch and job of it becomes pending, and is taken up in its turn.", verb: "Release all", reason: "needed" }}
      run={(why) => call("post", "/api/v1/ingest/queue/release-held", { body: { why, collection: collection ?? null } })}
      done={(value) => (value.released ? `${plural(value.released, "held batch or job goes", "held batches and jobs go")} on.` : "Nothing was held.")}
    >
      Release all held
    </Act>
  );
}

/** Stops a collection, or lets it go on. */
export function HoldCollection({ name, isHeld }: { name: string; isHeld: boolean }) {
  const path = { collection: name };
  return isHeld ? (
    <Act icon="play" ask={{ title: `Let collection ${name} go on?`, says: "New batches of it are taken up again. What it held stays held until that is released: use “Release all held” after this.", verb: "Let it go on", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/collections/{collection}/release", { path, body: { why } })} done={`${name} goes on.`}>
      Let it go on
    </Act>
  ) : (
    <Act icon="hand" ask={{ title: `Hold collection ${name}?`, says: "Batches and jobs of it that have not begun are held when their turn comes, until they are released. Jobs that are under way go on.", verb: "Hold the collection", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/collections/{collection}/hold", { path, body: { why } })} done={`${name} is held.`}>
      Hold
    </Act>
  );
}

export function DeleteCollection({ name }: { name: string }) {
  async function run() {
    const answer = await call("delete", "/api/v1/ingest/collections/{collection}", { path: { collection: name } });
    if (answer.ok) navigate("/ingest?tab=collections");
    return answer;
  }
  return (
    <Act icon="cross" kind="danger" ask={{ title: `Delete collection ${name}?`, says: "Its profile is forgotten, and nothing can be submitted to it any more. What it stored stays, and so does its dataset. It is refused while a batch of it is open. This cannot be undone.", verb: "Delete the collection", danger: true, typed: name }} run={run} done={`${name} is deleted.`}>
      Delete
    </Act>
  );
}

/** All that can be done with a batch as it stands now. */
export function BatchActions({ batch, tally }: { batch: Batch; tally: Tally }) {
  const path = { batch: batch.id };
  const held = jobsIn(tally, "held");
  const failed = jobsIn(tally, "failed");
  const pending = jobsIn(tally, "pending");
  const canHold = batch.status === "pending" || (batch.status === "processing" && pending > 0);
  return (
    <>
      {batch.status === "failed" && batch.jobs === 0 && (
        <Act icon="play" kind="primary" ask={{ title: `Read ${batch.id} again?`, says: "Its payload could not be read. The batch becomes pending, and its payload is read anew.", verb: "Read it again", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/batches/{batch}/resume", { path, body: { why } })} done={`${batch.id} is pending again.`}>
          Resume
        </Act>
      )}
      {failed > 0 && (
        <Act
          icon="play"
          kind="primary"
          ask={{ title: `Resume what failed of ${batch.id}?`, says: `${plural(failed, "failed job goes", "failed jobs go")} on after the last stage that succeeded. Whatever made them fail should be put right first. A job whose payload is at fault cannot go on: it needs a new submission.`, verb: "Resume", reason: "needed" }}
          run={(why) => call("post", "/api/v1/ingest/batches/{batch}/resume", { path, body: { why } })}
          done={(value) => saidOf(value.resumed)}
        >
          Resume failed
        </Act>
      )}
      {(batch.status === "held" || held > 0) && (
        <Act icon="play" ask={{ title: `Release ${batch.id}?`, says: batch.status === "held" ? "The batch becomes pending, and is taken up in its turn." : `${plural(held, "held job becomes", "held jobs become")} pending, and are taken up in their turn.`, verb: "Release the batch", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/batches/{batch}/release", { path, body: { why } })} done={`${batch.id} goes on.`}>
          Release
        </Act>
      )}
      {canHold && (
        <Act icon="hand" ask={{ title: `Hold ${batch.id}?`, says: batch.status === "pending" ? "The batch is not taken up until it is released." : `${plural(pending, "job that has", "jobs that have")} not begun wait until they are released; the others go on.`, verb: "Hold the batch", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/batches/{batch}/hold", { path, body: { why } })} done={(value) => (value.status === "held" ? `${batch.id} is held.` : `${plural(jobsIn(value.tally ?? {}, "held"), "job is", "jobs are")} held.`)}>
          Hold
        </Act>
      )}
      {batch.status === "failed" && batch.jobs > 0 && (
        <Act icon="file" ask={{ title: `Report ${batch.id} anew?`, says: "Its depositor gets another report that says how its jobs stand now. If all have completed, the batch is complete and so is its lot.", verb: "Report anew", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/batches/{batch}/update-report", { path, body: { why } })} done={`${batch.id} is reported anew.`}>
          Update the report
        </Act>
      )}
      {openJobs(tally) + held > 0 && (
        <Priority what={`the open jobs of ${batch.id}`} run={(priority, why) => call("post", "/api/v1/ingest/batches/{batch}/priority", { path, body: { priority, why } })} done={(value, priority) => `${plural(value.changed, "job has", "jobs have")} priority ${priority}.`} />
      )}
      {(batch.status === "failed" || batch.status === "held" || (batch.status === "processing" && held > 0 && openJobs(tally) === 0)) && <DeleteBatch batch={batch} />}
    </>
  );
}

function saidOf(resumed: readonly Schemas["ResumedJob"][]): string {
  const gone = resumed.filter((each) => each.stage);
  const refused = resumed.filter((each) => each.refused);
  const first = refused[0];
  return `${plural(gone.length, "job goes", "jobs go")} on.${first ? ` ${plural(refused.length, "cannot", "cannot")}: ${first.refused ?? ""}` : ""}`;
}

function DeleteBatch({ batch }: { batch: Batch }) {
  async function run(why: string) {
    const answer = await call("delete", "/api/v1/ingest/batches/{batch}", { path: { batch: batch.id }, query: { confirmed: true, why } });
    if (answer.ok) navigate("/ingest");
    return answer;
  }
  return (
    <Act icon="cross" kind="danger" ask={{ title: `Delete ${batch.id}?`, says: `The batch, its ${plural(batch.jobs, "job")} and their working folders are deleted; its depositor is not told. Objects that were stored already stay; the lot that was announced of it is removed. This cannot be undone.`, verb: "Delete the batch", danger: true, reason: "welcome", typed: batch.id }} run={run} done={`${batch.id} is deleted.`}>
      Delete
    </Act>
  );
}

const UNDER_WAY = new Set(["estimating", "provisioning", "downloading", "processing", "recording", "notify"]);

/** All that can be done with an ingest job as it stands now. */
export function JobActions({ job }: { job: Job }) {
  const path = { ingest_job: job.id };
  const isOpen = job.status !== "completed" && job.status !== "failed";
  return (
    <>
      {job.status === "failed" && job.resumesAt && <ResumeJob job={job} kind="primary" />}
      {job.status === "held" && (
        <Act icon="play" ask={{ title: `Release ${job.payloadName}?`, says: "The job becomes pending, and is taken up in its turn.", verb: "Release the job", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/release", { path, body: { why } })} done={`${job.payloadName} goes on.`}>
          Release
        </Act>
      )}
      {job.status === "pending" && (
        <Act icon="hand" ask={{ title: `Hold ${job.payloadName}?`, says: "The job is not taken up until it is released.", verb: "Hold the job", reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/hold", { path, body: { why } })} done={`${job.payloadName} is held.`}>
          Hold
        </Act>
      )}
      {isOpen && <Priority what={job.payloadName || job.id} now={job.priority} run={(priority, why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/priority", { path, body: { priority, why } })} done={(_, priority) => `${job.payloadName} has priority ${priority}.`} />}
      {(job.status === "pending" || UNDER_WAY.has(job.status)) && (
        <Act icon="cross" kind="danger" ask={{ title: `Stop ${job.payloadName}?`, says: "The job is failed at once, whoever is working on it; what they do can change nothing any more. It can be resumed after the last stage that succeeded, if there is one.", verb: "Stop the job", danger: true, reason: "needed" }} run={(why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/fail", { path, body: { why } })} done={`${job.payloadName} is stopped.`}>
          Stop
        </Act>
      )}
      {(job.status === "failed" || job.status === "held") && <DeleteJob job={job} />}
    </>
  );
}

export function ResumeJob({ job, kind = "plain" }: { job: Job; kind?: "plain" | "primary" }) {
  return (
    <Act
      icon="play"
      kind={kind}
      ask={{ title: `Resume ${job.payloadName}?`, says: `It goes on with ${job.resumesAt ?? "nothing"}. Whatever made it fail should be put right first.`, verb: "Resume", reason: "needed" }}
      run={(why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/resume", { path: { ingest_job: job.id }, body: { why } })}
      done={(value) => `${job.payloadName} goes on with ${value.status}.`}
    >
      Resume
    </Act>
  );
}

function DeleteJob({ job }: { job: Job }) {
  async function run(why: string) {
    const answer = await call("delete", "/api/v1/ingest/jobs/{ingest_job}", { path: { ingest_job: job.id }, query: { confirmed: true, why } });
    if (answer.ok) navigate(`/ingest/batches/${encodeURIComponent(job.batch)}`);
    return answer;
  }
  return (
    <Act icon="cross" kind="danger" ask={{ title: `Delete ${job.payloadName}?`, says: "The job and its working folder are deleted. Unless its batch is completed, its depositor is not told about it. This cannot be undone.", verb: "Delete the job", danger: true, reason: "welcome", typed: job.id }} run={run} done={`${job.payloadName} is deleted.`}>
      Delete
    </Act>
  );
}
