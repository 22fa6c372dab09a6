/** The newest problems of every kind in one list: what, why, since when, and the way out. */
import type { ReactNode } from "react";
import { HoldDataset, HoldJob, RetryLot, UnholdLot } from "../../actions/work";
import { call, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Act } from "../../kit/Act";
import { ButtonLink } from "../../kit/Button";
import { DatasetName, JobName, WorkName } from "../../kit/Names";
import { Panel } from "../../kit/Panel";
import { Empty } from "../../kit/Shown";
import { StatusIcon } from "../../kit/Status";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { address } from "../../router/router";
import { gapsPlace, runPlace } from "../../router/places";
import { errorOf } from "../runs/facets";

interface Problem {
  readonly id: string;
  readonly state: string;
  readonly at: string;
  readonly what: ReactNode;
  readonly why: ReactNode;
  readonly way: ReactNode;
}

const SHOWN = 30;

export function Problems({ now }: { now: Schemas["StandingNow"] }) {
  const failed = useGet("/api/v1/jobs", { query: { lastRunStates: ["FAILED"], limit: 20 } }).value?.jobs ?? [];
  const batches = useGet("/api/v1/ingest/jobs", { query: { status: "failed", limit: 20 } }).value?.jobs ?? [];
  const lots = new Set(now.stuck.map((each) => `${each.namespace}/${each.job}`));
  const problems = [
    ...now.stuck.map(ofLot),
    ...now.holds.map(ofHold),
    ...now.late.map(ofLate),
    ...failed.filter((job) => !lots.has(`${job.namespace}/${job.name}`)).map(ofJob),
    ...batches.map(ofIngest),
  ].sort((a, b) => b.at.localeCompare(a.at));
  return (
    <Panel title="Problems" aside={problems.length ? `newest first, ${problems.length} in all` : undefined} className="problems">
      {problems.length === 0 ? (
        <Empty icon="check" title="Nothing is wrong">
          No job failed with its latest run, no lot is stuck or late, nothing is held.
        </Empty>
      ) : (
        <ul>
          {problems.slice(0, SHOWN).map((problem) => (
            <li key={problem.id}>
              <StatusIcon of={problem.state} />
              <div>
                <div className="what">
                  {problem.what}
                  <span className="faint">
                    <Time at={problem.at} />
                  </span>
                </div>
                <p className="muted">{problem.why}</p>
              </div>
              <div className="way">{problem.way}</div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function ofLot(lot: Schemas["StuckLot"]): Problem {
  const job = { namespace: lot.namespace, name: lot.job };
  const isHeld = lot.state === "HELD";
  const outOfTries = isHeld && lot.attempts >= lot.attemptsMax;
  return {
    id: `lot ${lot.namespace}/${lot.job}/${lot.lot}`,
    state: isHeld && !outOfTries ? "HELD" : "FAILED",
    at: lot.since,
    what: (
      <span>
        <JobName of={job} /> <span className="faint">on</span> <WorkName job={job} lot={lot.lot} />
      </span>
    ),
    why: (
      <>
        {lot.error || (lot.held ? `Held by ${lot.held}` : "It failed without a word.")}{" "}
        <span className="faint">
          {outOfTries && `Out of tries (${lot.attempts} of ${lot.attemptsMax}).`}
          {lot.state === "LATER" && (
            <>
              Try {lot.attempts} of {lot.attemptsMax}; again <Time at={lot.notBefore} />.
            </>
          )}
        </span>
      </>
    ),
    way: isHeld ? <UnholdLot namespace={lot.namespace} job={lot.job} lot={lot.lot} /> : <RetryLot namespace={lot.namespace} job={lot.job} lot={lot.lot} />,
  };
}

function ofHold(hold: Schemas["HeldWhole"]): Problem {
  const name = { namespace: hold.namespace, name: hold.name };
  const isJob = hold.kind === "JOB";
  return {
    id: `hold ${hold.kind} ${hold.namespace}/${hold.name}`,
    state: "HELD",
    at: hold.since,
    what: (
      <span>
        {isJob ? <JobName of={name} /> : <DatasetName of={name} />} <span className="faint">is held</span>
      </span>
    ),
    why: `${hold.who}: ${hold.why || "no reason given"}`,
    way: isJob ? <HoldJob namespace={hold.namespace} job={hold.name} isHeld /> : <HoldDataset namespace={hold.namespace} dataset={hold.name} isHeld />,
  };
}

function ofLate(late: Schemas["LateDataset"]): Problem {
  const dataset = { namespace: late.namespace, name: late.dataset };
  return {
    id: `late ${late.namespace}/${late.dataset}`,
    state: "late",
    at: late.since,
    what: (
      <span>
        <DatasetName of={dataset} /> <span className="faint">is late</span>
      </span>
    ),
    why: `${plural(late.count, "lot")} of ${late.interval} ${late.count === 1 ? "was" : "were"} to be there by now, from ${late.first} on.`,
    way: (
      <ButtonLink to={gapsPlace(dataset, late.first)} icon="right">
        Why
      </ButtonLink>
    ),
  };
}

function ofJob(job: Schemas["Job"]): Problem {
  const run = job.latestRun;
  return {
    id: `job ${job.namespace}/${job.name}`,
    state: "FAILED",
    at: run?.endedAt ?? job.updatedAt,
    what: <JobName of={job.id} />,
    why: (run && errorOf(run.facets)) ?? "Its latest run failed; it reported no cause.",
    way: run && (
      <ButtonLink to={runPlace(run.id)} icon="right">
        The run
      </ButtonLink>
    ),
  };
}

function ofIngest(job: Schemas["ShownIngestJob"]): Problem {
  return {
    id: `ingest ${job.id}`,
    state: "failed",
    at: job.lastModified,
    what: (
      <span>
        <Link className="name" to={address(["ingest", "batches", job.batch])}>
          {job.payloadName}
        </Link>{" "}
        <span className="faint">of</span> {job.batch} <span className="faint">in {job.collection}</span>
      </span>
    ),
    why: job.message || "It failed without a word.",
    way: job.resumesAt && (
      <Act
        icon="play"
        ask={{ title: `Resume ${job.payloadName}?`, says: `It goes on with ${job.resumesAt}, after the last stage that succeeded. Whatever made it fail should be put right first.`, verb: "Resume", reason: "welcome" }}
        run={(why) => call("post", "/api/v1/ingest/jobs/{ingest_job}/resume", { path: { ingest_job: job.id }, body: { why } })}
        done={(value) => `${job.payloadName} goes on with ${value.status}.`}
      >
        Resume
      </Act>
    ),
  };
}
