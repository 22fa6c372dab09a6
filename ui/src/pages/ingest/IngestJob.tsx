/** An ingest job: its state, its history, its stored object. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Icon } from "../../kit/Icon";
import { RunLink } from "../../kit/links";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { ENDED_STATES, lookOf } from "../../kit/states";
import { Rows } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { shortDigest, count, plural, size, span } from "../../kit/format";
import { JobActions } from "./actions";
import "./ingest.css";
import { BatchLink, CollectionLink } from "./links";
import { stays } from "./tally";

type Job = Schemas["ShownIngestJob"];

export default function IngestJob({ id = "" }: { id?: string }) {
  const result = useGet("/api/v1/ingest/jobs/{ingest_job}", { path: { ingest_job: id } });
  return (
    <Async of={result}>
      {(job) => (
        <>
          <PageHead
            kind={
              <>
                <Icon name="inbox" size={14} /> Ingest job <span className="mono">{job.id}</span> of{" "}
                <BatchLink of={job.batch} /> in <CollectionLink of={job.collection} />
              </>
            }
            title={job.payloadName || job.id}
            actions={<JobActions job={job} />}
          >
            <Status of={job.status} />
            {job.title && <span>{job.title}</span>}
            <span>
              since <Time at={job.lastModified} />
            </span>
          </PageHead>
          {job.message && (
            <div
              className={`trouble stopped-note tone-${job.status === "held" ? "held" : "bad"}`}
              role="note"
            >
              <Icon name={job.status === "held" ? "hand" : "alert"} />
              <div>
                <p>{job.message}</p>
                {job.status === "failed" && (
                  <p>
                    {job.resumesAt
                      ? `Remove the cause, then resume the job: it continues with ${job.resumesAt}.`
                      : "The payload is bad, so the job cannot be resumed. Submit it again, and delete this job."}
                  </p>
                )}
              </div>
            </div>
          )}
          <div className="stack">
            <StageHistory job={job} />
            <JobFacts job={job} />
            {job.primaryId && job.status === "completed" && <StoredObject ark={job.primaryId} />}
          </div>
        </>
      )}
    </Async>
  );
}

function StageHistory({ job }: { job: Job }) {
  const now = useNow();
  const all = stays(job.history);
  const begin = Date.parse(all[0]?.at ?? job.lastModified);
  const isOver = job.status === "held" || ENDED_STATES.includes(job.status);
  const end = isOver ? Date.parse(all.at(-1)?.at ?? job.lastModified) : now;
  const whole = Math.max(1, end - begin);
  return (
    <Panel
      title="Stages"
      aside={`${isOver ? "took" : "for"} ${span(whole / 1000)}${job.retryCount ? `, resumed ${plural(job.retryCount, "time")}` : ""}`}
    >
      <ol className="stays">
        {all.map((stay, place) => {
          const from = Date.parse(stay.at);
          const seconds = stay.seconds ?? (isOver ? 0 : (now - from) / 1000);
          return (
            <li key={place}>
              <span>
                <Status of={stay.status} />
              </span>
              <span className="lane">
                <i
                  className={`bar tone-${lookOf(stay.status).tone}`}
                  style={{
                    left: `${((from - begin) / whole) * 99}%`,
                    width: `${((seconds * 1000) / whole) * 99}%`,
                  }}
                />
              </span>
              <span className="took num">
                {place === all.length - 1 && isOver ? "" : span(seconds)}
              </span>
              <span className="faint num">
                <Time at={stay.at} /> · {stay.at.slice(11, 19)}
              </span>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

function JobFacts({ job }: { job: Job }) {
  return (
    <Panel title="Details">
      <div className="body">
        <Facts
          of={[
            ["Ark", job.primaryId && <span className="mono">{job.primaryId}</span>],
            ["Local ids", job.localIds.join(", ") || "none"],
            ["Payload", <span className="mono uri">{job.payloadUrl}</span>],
            ["Kind", job.payloadType.replaceAll("_", " ")],
            ["Mode", job.mode],
            ["Bytes needed", size(job.spaceNeeded)],
            ...(job.download
              ? [
                  [
                    "Downloaded",
                    `${size(job.download.bytes)}${job.download.total ? ` of ${size(job.download.total)}` : ""}`,
                  ] as [string, string],
                ]
              : []),
            ["Priority", `${job.priority} (0 runs first)`],
            ["Last stage that succeeded", job.lastSuccessfulStatus ?? "none"],
            ["Resumed", plural(job.retryCount, "time")],
            ["Daemon", job.lockedBy ?? "none"],
            ["Working folder", <span className="mono uri">{job.workingFolder}</span>],
          ]}
        />
      </div>
    </Panel>
  );
}

function StoredObject({ ark }: { ark: string }) {
  const versions = useGet("/api/v1/ingest/objects/versions", { query: { ark } });
  const files = useGet("/api/v1/ingest/objects/files", { query: { ark } });
  return (
    <>
      <Async of={versions}>
        {(value) => (
          <Panel title="Stored object" aside={plural(value.versions.length, "version")}>
            <Rows
              of={value.versions}
              label="versions of the object"
              rows={6}
              columns={[
                { title: "version", cell: (each) => each.version, width: "70px", end: true },
                { title: "batch", cell: (each) => <BatchLink of={each.batch} />, width: "130px" },
                { title: "files", cell: (each) => count(each.files), width: "70px", end: true },
                { title: "bytes", cell: (each) => size(each.bytes), width: "80px", end: true },
                {
                  title: "run",
                  cell: (each) => <RunLink of={each.runId} />,
                  width: "130px",
                  wide: true,
                },
                {
                  title: "digest",
                  cell: (each) => (
                    <span className="mono faint" title={each.digest}>
                      {shortDigest(each.digest)}
                    </span>
                  ),
                  wide: true,
                },
                { title: "stored", cell: (each) => <Time at={each.at} />, width: "90px" },
              ]}
            />
          </Panel>
        )}
      </Async>
      <Async of={files}>
        {(value) => (
          <Panel title="Files of the newest version" aside={plural(value.files.length, "file")}>
            <Rows
              of={value.files}
              label="files"
              rows={10}
              columns={[
                {
                  title: "file",
                  cell: (file) => (
                    <span className="mono" title={file.name}>
                      {file.name}
                    </span>
                  ),
                  width: "minmax(9rem, 2fr)",
                },
                {
                  title: "size",
                  cell: (file) => (file.size === null ? "missing" : size(file.size)),
                  width: "90px",
                  end: true,
                },
                {
                  title: "type",
                  cell: (file) => (
                    <span className="faint" title={file.mimeType ?? undefined}>
                      {file.mimeType}
                    </span>
                  ),
                  width: "120px",
                  wide: true,
                },
                {
                  title: "modified",
                  cell: (file) => (
                    <span className="faint" title={file.lastModified ?? undefined}>
                      {file.lastModified}
                    </span>
                  ),
                  width: "150px",
                  wide: true,
                },
                {
                  title: "SHA-512",
                  cell: (file) => (
                    <span className="mono faint" title={file.sha512}>
                      {shortDigest(file.sha512)}
                    </span>
                  ),
                  width: "200px",
                  wide: true,
                },
              ]}
            />
          </Panel>
        )}
      </Async>
    </>
  );
}
