/** The newest problems of every kind in one list: what, why, since when, and the way out. */
import type { Schemas } from "../../api/client";
import { Icon } from "../../kit/Icon";
import { Panel } from "../../kit/Panel";
import { Empty, Waiting } from "../../kit/Shown";
import { StatusIcon } from "../../kit/Status";
import { Time } from "../../kit/Time";
import { First } from "./First";
import { ofBatch, ofCollection, ofFailedIngest, ofHeldIngest, ofHeldLot, ofHold, ofJob, ofLate, ofLot, ofQueue, ofStale, type Problem } from "./kinds";
import { SHOWN, type Sources } from "./sources";

type Now = Schemas["StandingNow"];

export function Problems({ now, sources }: { now: Now; sources: Sources }) {
  const problems = problemsOf(now, sources);
  const { awaited, unread, isWhole } = sources;
  const isAll = isWhole && problems.length <= SHOWN && awaited.length + unread.length === 0;
  return (
    <Panel title="Problems" aside={problems.length > 0 && (isAll ? `${problems.length}, newest first` : `the newest ${Math.min(SHOWN, problems.length)} of more`)} className="problems">
      {unread.length > 0 && <Unread of={unread} />}
      {problems.length > 0 ? (
        <ul>
          {problems.slice(0, SHOWN).map((problem) => (
            <Row key={problem.id} of={problem} />
          ))}
        </ul>
      ) : awaited.length > 0 ? (
        <div className="body">
          <p className="muted">Reading {awaited.join(", ")}…</p>
          <Waiting />
        </div>
      ) : unread.length > 0 ? (
        <Empty icon="alert" title="Nothing is wrong in what could be read" />
      ) : isUntouched(now, sources) ? (
        <First />
      ) : (
        <Empty icon="check" title="Nothing is wrong">
          No job failed with its latest run, no lot is stuck, late or stale, nothing is held, no deposit failed.
        </Empty>
      )}
      {problems.length > 0 && awaited.length > 0 && <p className="body muted">Still reading {awaited.join(", ")}…</p>}
    </Panel>
  );
}

function problemsOf(now: Now, sources: Sources): readonly Problem[] {
  const told = new Set(now.stuck.map((each) => `${each.namespace}/${each.job}`));
  return [
    ...now.stuck.map(ofLot),
    ...now.holds.filter((hold) => !isFollowed(hold, now.holds)).map(ofHold),
    ...now.late.map(ofLate),
    // What is held for what it was made from goes on with that.
    ...(sources.heldLots?.lots ?? []).filter((lot) => lot.byHand || lot.forChecks).map(ofHeldLot),
    ...ofStale(sources.stale),
    ...sources.failedJobs.filter((job) => !told.has(`${job.namespace}/${job.name}`)).map(ofJob),
    ...sources.failedIngest.map(ofFailedIngest),
    ...ofHeldIngest(sources.heldIngest),
    // A batch with failed jobs is told by them.
    ...[...sources.heldBatches, ...sources.failedBatches.filter((batch) => !batch.tally?.["failed"]?.jobs)].map(ofBatch),
    ...(sources.queue?.held ? [ofQueue(sources.queue.held)] : []),
    ...(sources.queue?.collectionsHeld ?? []).map(ofCollection),
  ].sort((a, b) => b.at.localeCompare(a.at));
}

/** Whether a hold ends with that of a dataset that is shown too. */
function isFollowed({ source }: Schemas["HeldWhole"], holds: Now["holds"]): boolean {
  return source !== null && holds.some((hold) => hold.kind === "DATASET" && hold.namespace === source.namespace && hold.name === source.name);
}

/** Whether nothing has ever come: no job, no lot, no deposit. */
function isUntouched(now: Now, { queue }: Sources): boolean {
  const jobs = Object.values(now.jobs).reduce((sum, each) => sum + (each ?? 0), 0);
  return jobs + now.work.length + Object.keys(queue?.tally ?? {}).length === 0 && now.hours.every((hour) => Object.keys(hour.counts).length === 0);
}

function Row({ of: problem }: { of: Problem }) {
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
      <div className="way">{problem.way}</div>
    </li>
  );
}

function Unread({ of: unread }: { of: Sources["unread"] }) {
  return (
    <div className="trouble tone-warn" role="note">
      <Icon name="alert" />
      <div>
        <strong>Not everything is shown</strong>
        {unread.map(({ what, why }) => (
          <p key={what}>
            {what}: {why}
          </p>
        ))}
      </div>
    </div>
  );
}
