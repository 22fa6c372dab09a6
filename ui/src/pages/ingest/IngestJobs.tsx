/** The jobs of all batches that are in one stage, in the order of their turns. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { size } from "../../kit/words";
import { useQuery } from "../../router/router";
import { ResumeJob } from "./actions";
import { BatchName, IngestJobName, ingestJobPlace } from "./names";
import { JOB_STATES, type JobState } from "./stages";

type Job = Schemas["ShownIngestJob"];
const PART = 200;

/** What a list of jobs shows; `batch` is left out where it is known. */
export function jobColumns({ batch }: { batch: boolean }): Column<Job>[] {
  const of: Column<Job> = { title: "batch", cell: (job) => <BatchName of={job.batch} />, width: "120px", wide: true };
  return [
    { title: "job", cell: (job) => <IngestJobName of={job.id} label={job.payloadName} />, width: "minmax(8rem, 1.2fr)" },
    { title: "state", cell: (job) => <Status of={job.status} />, width: "120px" },
    ...(batch ? [of] : []),
    { title: "title", cell: (job) => <span title={job.title ?? ""}>{job.title}</span>, width: "minmax(5rem, 1fr)", wide: true },
    { title: "bytes", cell: (job) => size(job.spaceNeeded), width: "76px", end: true, wide: true },
    { title: "priority", cell: (job) => job.priority, width: "60px", end: true, wide: true },
    { title: "message", cell: (job) => <span title={job.message}>{job.message}</span>, width: "minmax(5rem, 1.6fr)", wide: true },
    { title: "since", cell: (job) => <Time at={job.lastModified} />, width: "84px" },
    { title: "", acts: true, cell: (job) => job.status === "failed" && job.resumesAt && <ResumeJob job={job} />, width: "100px", end: true, wide: true },
  ];
}

export function IngestJobs() {
  const [query, setQuery] = useQuery();
  const status = (query.get("status") ?? "failed") as JobState;
  const after = query.get("after");
  const collection = query.get("collection");
  const found = useGet("/api/v1/ingest/jobs", { query: { status, limit: PART, ...(collection ? { collection } : {}), ...(after ? { after } : {}) } }, { keep: true });
  return (
    <>
      <div className="filters">
        <label className="row">
          Stage
          <select className="field" value={status} onChange={(event) => setQuery({ status: event.target.value, after: null })}>
            {JOB_STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
      </div>
      <Shown of={found}>
        {(value) =>
          value.jobs.length === 0 ? (
            <Empty icon={status === "failed" ? "check" : "inbox"} title={`No job is ${status}`}>
              {status === "failed" ? "Nothing waits for you here." : "Jobs come here when a batch is taken up: see the batches."}
            </Empty>
          ) : (
            <Panel title={`Jobs that are ${status}`} aside="in the order of their turns">
              <Rows of={value.jobs} label="ingest jobs" columns={jobColumns({ batch: true })} to={(job) => ingestJobPlace(job.id)} />
              <Pager first="First" next="Next" onFirst={after ? () => setQuery({ after: null }) : null} onNext={value.next ? () => setQuery({ after: value.next }, { push: true }) : null} />
            </Panel>
          )
        }
      </Shown>
    </>
  );
}
