/** The jobs of all batches in one stage, in queue order. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { INGEST_STATES, type IngestState } from "../../kit/states";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { size } from "../../kit/format";
import { useSearchParams } from "../../router/router";
import { ResumeJobButton } from "./actions";
import { BatchLink, IngestJobLink, ingestJobAddress } from "./links";

type Job = Schemas["ShownIngestJob"];
const PART = 200;

/** The columns of a list of jobs, with or without the batch. */
export function jobColumns({ batch }: { batch: boolean }): Column<Job>[] {
  const of: Column<Job> = {
    title: "batch",
    cell: (job) => <BatchLink of={job.batch} />,
    width: "120px",
    wide: true,
  };
  return [
    {
      title: "job",
      cell: (job) => <IngestJobLink of={job.id} label={job.payloadName} />,
      width: "minmax(8rem, 1.2fr)",
    },
    { title: "state", cell: (job) => <Status of={job.status} />, width: "120px" },
    ...(batch ? [of] : []),
    {
      title: "title",
      cell: (job) => <span title={job.title ?? ""}>{job.title}</span>,
      width: "minmax(5rem, 1fr)",
      wide: true,
    },
    { title: "bytes", cell: (job) => size(job.spaceNeeded), width: "76px", end: true, wide: true },
    { title: "priority", cell: (job) => job.priority, width: "60px", end: true, wide: true },
    {
      title: "message",
      cell: (job) => <span title={job.message}>{job.message}</span>,
      width: "minmax(5rem, 1.6fr)",
      wide: true,
    },
    { title: "since", cell: (job) => <Time at={job.lastModified} />, width: "84px" },
    {
      title: "",
      isAction: true,
      cell: (job) => job.status === "failed" && job.resumesAt && <ResumeJobButton job={job} />,
      width: "100px",
      end: true,
      wide: true,
    },
  ];
}

export function IngestJobs() {
  const [query, setQuery] = useSearchParams();
  const status = (query.get("status") ?? "failed") as IngestState;
  const after = query.get("after");
  const collection = query.get("collection");
  const result = useGet(
    "/api/v1/ingest/jobs",
    {
      query: {
        status,
        limit: PART,
        ...(collection ? { collection } : {}),
        ...(after ? { after } : {}),
      },
    },
    { keep: true },
  );
  return (
    <>
      <div className="filters">
        <label className="row">
          Stage
          <select
            className="field"
            value={status}
            onChange={(event) => setQuery({ status: event.target.value, after: null })}
          >
            {INGEST_STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
      </div>
      <Async of={result}>
        {(value) =>
          value.jobs.length === 0 ? (
            <EmptyState
              icon={status === "failed" ? "check" : "inbox"}
              title={`No job is ${status}`}
            >
              {status === "failed"
                ? "There is nothing to resume."
                : "Jobs appear when a daemon takes up a batch."}
            </EmptyState>
          ) : (
            <Panel title={`Jobs that are ${status}`} aside="in queue order">
              <Rows
                of={value.jobs}
                label="ingest jobs"
                columns={jobColumns({ batch: true })}
                to={(job) => ingestJobAddress(job.id)}
              />
              <Pager
                first="First"
                next="Next"
                onFirst={after ? () => setQuery({ after: null }) : null}
                onNext={value.next ? () => setQuery({ after: value.next }, { push: true }) : null}
              />
            </Panel>
          )
        }
      </Async>
    </>
  );
}
