/** The newest problems of every kind in one list, each with its cause and its remedy. */
import type { Schemas } from "../../api/client";
import { Icon } from "../../kit/Icon";
import { Panel } from "../../kit/Panel";
import { EmptyState, Loading } from "../../kit/Async";
import { StatusIcon } from "../../kit/Status";
import { Time } from "../../kit/Time";
import { GettingStarted } from "./GettingStarted";
import {
  batchProblem,
  collectionProblem,
  failedIngestProblem,
  heldIngestProblems,
  heldLotProblem,
  holdProblem,
  failedJobProblem,
  lateProblem,
  stuckLotProblem,
  queueProblem,
  staleProblems,
  type Problem,
} from "./problemKinds";
import { SHOWN, type Sources } from "./sources";

type Now = Schemas["SystemOverview"];

export function Problems({ now, sources }: { now: Now; sources: Sources }) {
  const problems = problemsOf(now, sources);
  const { awaited, unread, isWhole } = sources;
  const isAll = isWhole && problems.length <= SHOWN && awaited.length + unread.length === 0;
  return (
    <Panel
      title="Problems"
      aside={
        problems.length > 0 &&
        (isAll
          ? `${problems.length}, newest first`
          : `the newest ${Math.min(SHOWN, problems.length)} of more`)
      }
      className="problems"
    >
      {unread.length > 0 && <UnreadNote of={unread} />}
      {problems.length > 0 ? (
        <ul>
          {problems.slice(0, SHOWN).map((problem) => (
            <ProblemRow key={problem.id} of={problem} />
          ))}
        </ul>
      ) : awaited.length > 0 ? (
        <div className="body">
          <p className="muted">Reading {awaited.join(", ")}…</p>
          <Loading />
        </div>
      ) : unread.length > 0 ? (
        <EmptyState icon="alert" title="No problem in the parts that could be read" />
      ) : isUntouched(now, sources) ? (
        <GettingStarted />
      ) : (
        <EmptyState icon="check" title="No problem">
          No latest run failed, no lot is stuck, late or stale, nothing is on hold, and no ingest
          job failed.
        </EmptyState>
      )}
      {problems.length > 0 && awaited.length > 0 && (
        <p className="body muted">Still reading {awaited.join(", ")}…</p>
      )}
    </Panel>
  );
}

function problemsOf(now: Now, sources: Sources): readonly Problem[] {
  const withStuckLot = new Set(now.stuck.map((each) => `${each.namespace}/${each.job}`));
  return [
    ...now.stuck.map(stuckLotProblem),
    ...now.holds.filter((hold) => !isFollowed(hold, now.holds)).map(holdProblem),
    ...now.late.map(lateProblem),
    // A lot that is held with its inputs is released with them.
    ...(sources.heldLots?.lots ?? [])
      .filter((lot) => lot.byHand || lot.forChecks)
      .map(heldLotProblem),
    ...staleProblems(sources.stale),
    ...sources.failedJobs
      .filter((job) => !withStuckLot.has(`${job.namespace}/${job.name}`))
      .map(failedJobProblem),
    ...sources.failedIngest.map(failedIngestProblem),
    ...heldIngestProblems(sources.heldIngest),
    // The failed jobs of a batch are problems of their own.
    ...[
      ...sources.heldBatches,
      ...sources.failedBatches.filter((batch) => !batch.tally?.["failed"]?.jobs),
    ].map(batchProblem),
    ...(sources.queue?.held ? [queueProblem(sources.queue.held)] : []),
    ...(sources.queue?.collectionsHeld ?? []).map(collectionProblem),
  ].sort((a, b) => b.at.localeCompare(a.at));
}

/** Whether a hold ends with that of a dataset in the same list. */
function isFollowed({ source }: Schemas["HeldWhole"], holds: Now["holds"]): boolean {
  return (
    source !== null &&
    holds.some(
      (hold) =>
        hold.kind === "DATASET" && hold.namespace === source.namespace && hold.name === source.name,
    )
  );
}

/** Whether the server has no job, no lot and no batch. */
function isUntouched(now: Now, { queue }: Sources): boolean {
  const jobs = Object.values(now.jobs).reduce((sum, each) => sum + (each ?? 0), 0);
  return (
    jobs + now.work.length + Object.keys(queue?.tally ?? {}).length === 0 &&
    now.hours.every((hour) => Object.keys(hour.counts).length === 0)
  );
}

function ProblemRow({ of: problem }: { of: Problem }) {
  return (
    <li>
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
      <div className="way">{problem.remedy}</div>
    </li>
  );
}

function UnreadNote({ of: unread }: { of: Sources["unread"] }) {
  return (
    <div className="trouble tone-warn" role="note">
      <Icon name="alert" />
      <div>
        <strong>Some problems may be missing</strong>
        {unread.map(({ what, why }) => (
          <p key={what}>
            {what}: {why}
          </p>
        ))}
      </div>
    </div>
  );
}
