import type { Schemas } from "../../api/client";
import { type Bar, Share } from "../../kit/Bars";
import { JobName } from "../../kit/Names";
import { Panel } from "../../kit/Panel";
import { Empty } from "../../kit/Shown";
import { StatusIcon } from "../../kit/Status";
import { lookOf } from "../../kit/status";
import { count, size } from "../../kit/words";
import { Link } from "../../router/Link";

const STAGES = ["pending", "estimating", "provisioning", "downloading", "processing", "recording", "notify", "held", "failed"];
const SHOWN = 8;

/** How much waits before each job, and in each stage of ingest. */
export function Queues({ now, queue }: { now: Schemas["StandingNow"]; queue: Schemas["Queue"] | undefined }) {
  const most = Math.max(1, ...now.work.map((job) => parts(job).reduce((sum, part) => sum + part.value, 0)));
  const stages = STAGES.map((stage) => ({ stage, jobs: queue?.tally?.[stage]?.jobs ?? 0, bytes: queue?.tally?.[stage]?.bytes ?? 0 })).filter((each) => each.jobs);
  return (
    <>
      <Panel title="Open lots, by job" aside={<Link to="/jobs?open=1">all jobs</Link>}>
        {now.work.length === 0 ? (
          <Empty icon="check" title="No job has an open lot">
            Everything that came is done.
          </Empty>
        ) : (
          <ul className="queues">
            {now.work.slice(0, SHOWN).map((job) => (
              <li key={`${job.namespace}/${job.job}`}>
                <JobName of={{ namespace: job.namespace, name: job.job }} />
                <Share parts={parts(job)} of={most} />
                <span className="num">{count(parts(job).reduce((sum, part) => sum + part.value, 0))}</span>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {stages.length > 0 && (
        <Panel title="Ingest, by stage" aside={<Link to="/ingest">ingest</Link>}>
          <ul className="queues">
            {stages.map(({ stage, jobs, bytes }) => (
              <li key={stage}>
                <span>
                  <StatusIcon of={stage} /> {stage}
                </span>
                <Share parts={[{ tone: lookOf(stage).tone, word: stage, value: jobs }]} of={Math.max(...stages.map((each) => each.jobs))} />
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
    { tone: "warn", word: "to be tried later", value: job.later },
    { tone: "held", word: "held", value: job.held },
  ];
}
