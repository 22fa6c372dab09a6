import type { Schemas } from "../../api/client";
import { type Bar, Share } from "../../kit/Bars";
import { JobLink } from "../../kit/links";
import { Panel } from "../../kit/Panel";
import { EmptyState } from "../../kit/Async";
import { StatusIcon } from "../../kit/Status";
import { INGEST_STATES, lookOf } from "../../kit/states";
import { count, size } from "../../kit/format";
import { Link } from "../../router/Link";

const OPEN_STATES = INGEST_STATES.filter((state) => state !== "completed");
const SHOWN = 8;

/** The open lots of each job, and the ingest jobs in each stage. */
export function Queues({
  now,
  queue,
}: {
  now: Schemas["SystemOverview"];
  queue: Schemas["Queue"] | undefined;
}) {
  const most = Math.max(
    1,
    ...now.work.map((job) => parts(job).reduce((sum, part) => sum + part.value, 0)),
  );
  const stages = OPEN_STATES.map((stage) => ({
    stage,
    jobs: queue?.tally?.[stage]?.jobs ?? 0,
    bytes: queue?.tally?.[stage]?.bytes ?? 0,
  })).filter((each) => each.jobs);
  return (
    <>
      <Panel title="Open lots by job" aside={<Link to="/jobs?open=1">all jobs</Link>}>
        {now.work.length === 0 ? (
          <EmptyState icon="check" title="No open lot">
            Every lot is done.
          </EmptyState>
        ) : (
          <ul className="queues">
            {now.work.slice(0, SHOWN).map((job) => (
              <li key={`${job.namespace}/${job.job}`}>
                <JobLink of={{ namespace: job.namespace, name: job.job }} />
                <Share parts={parts(job)} of={most} />
                <span className="num">
                  {count(parts(job).reduce((sum, part) => sum + part.value, 0))}
                </span>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {stages.length > 0 && (
        <Panel title="Ingest jobs by stage" aside={<Link to="/ingest">ingest</Link>}>
          <ul className="queues">
            {stages.map(({ stage, jobs, bytes }) => (
              <li key={stage}>
                <span>
                  <StatusIcon of={stage} /> {stage}
                </span>
                <Share
                  parts={[{ tone: lookOf(stage).tone, word: stage, value: jobs }]}
                  of={Math.max(...stages.map((each) => each.jobs))}
                />
                <span className="num">
                  {count(jobs)} <span className="faint">{bytes ? size(bytes) : ""}</span>
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

function parts(job: Schemas["JobStanding"]): Bar["parts"] {
  return [
    { tone: "active", word: "running", value: job.running },
    { tone: "good", word: "ready", value: job.ready },
    { tone: "idle", word: "waiting", value: job.waiting },
    { tone: "warn", word: "to retry later", value: job.retryable },
    { tone: "held", word: "on hold", value: job.held },
  ];
}
