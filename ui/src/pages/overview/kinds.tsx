/** Each kind of problem: what it is, why, since when, and the way out. */
import type { ReactNode } from "react";
import { AcceptLot, FreeLot } from "../../actions/lots";
import { ReleaseHold, ReleaseWork, RetryLot } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { ButtonLink } from "../../kit/Button";
import { DatasetName, JobName, LotName, WorkName } from "../../kit/Names";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { gapsPlace, runPlace } from "../../router/places";
import { address } from "../../router/router";
import { HoldCollection, PauseQueue, ResumeJob } from "../ingest/actions";
import { BatchName, batchPlace, CollectionName } from "../ingest/names";

export interface Problem {
  readonly id: string;
  readonly state: string;
  readonly at: string;
  readonly what: ReactNode;
  readonly why: ReactNode;
  readonly way: ReactNode;
}

export function ofLot(lot: Schemas["StuckLot"]): Problem {
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
          {outOfTries && `· Out of tries (${lot.attempts} of ${lot.attemptsMax}).`}
          {lot.state === "LATER" && (
            <>
              · Try {lot.attempts} of {lot.attemptsMax}; again <Time at={lot.notBefore} />.
            </>
          )}
        </span>
      </>
    ),
    way: isHeld ? <ReleaseWork work={lot} /> : <RetryLot namespace={lot.namespace} job={lot.job} lot={lot.lot} />,
  };
}

export function ofHold(hold: Schemas["HeldWhole"]): Problem {
  const name = { namespace: hold.namespace, name: hold.name };
  const isDataset = hold.kind === "DATASET";
  return {
    id: `hold ${hold.kind} ${hold.namespace}/${hold.name}`,
    state: "HELD",
    at: hold.since,
    what: (
      <span>
        {isDataset ? <DatasetName of={name} /> : <JobName of={name} />} <span className="faint">is held</span>
      </span>
    ),
    why: saidBy(hold),
    way: <ReleaseHold hold={hold} />,
  };
}

export function ofHeldLot(lot: Schemas["HeldLot"]): Problem {
  const dataset = { namespace: lot.namespace, name: lot.dataset };
  return {
    id: `held ${lot.namespace}/${lot.dataset}/${lot.lot}`,
    state: lot.byHand ? "HELD" : "FAILED",
    at: lot.since,
    what: (
      <span>
        <LotName dataset={dataset} lot={lot.lot} /> <span className="faint">of</span> <DatasetName of={dataset} /> <span className="faint">is held</span>
      </span>
    ),
    why: lot.byHand ? saidBy(lot) : `Held by its checks${lot.why && ` (${lot.why})`}; accept it, or make it again.`,
    way: lot.byHand ? <FreeLot lot={lot} /> : <AcceptLot lot={lot} />,
  };
}

/** Lots that nobody makes again by themselves, told once for each job. */
export function ofStale(lots: readonly Schemas["Work"][]): readonly Problem[] {
  const left = lots.filter((work) => work.state === "DONE");
  return grouped(left, (work) => `${work.namespace}/${work.job}`).map(([id, [first, ...rest]]) => {
    const job = { namespace: first.namespace, name: first.job };
    return {
      id: `stale ${id}`,
      state: "stale",
      at: newest([first, ...rest].map((work) => work.staleSince ?? "")),
      what: (
        <span>
          <JobName of={job} /> <span className="faint">has stale lots</span>
        </span>
      ),
      why: `${plural(rest.length + 1, "lot")} of it ${rest.length ? "were" : "was"} made from what has changed since, such as ${first.lot}; a person says whether to make ${rest.length ? "them" : "it"} again.`,
      way: (
        <ButtonLink to={address(["quality"], { tab: "stale", namespace: first.namespace, job: first.job })} icon="right">
          The lots
        </ButtonLink>
      ),
    };
  });
}

export function ofLate(late: Schemas["LateDataset"]): Problem {
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

export function ofJob(job: Schemas["Job"]): Problem {
  const run = job.latestRun;
  return {
    id: `job ${job.namespace}/${job.name}`,
    state: "FAILED",
    at: run?.endedAt ?? job.updatedAt,
    what: <JobName of={job.id} />,
    why: run?.cause ?? "Its latest run failed; it reported no cause.",
    way: run && (
      <ButtonLink to={runPlace(run.id)} icon="right">
        The run
      </ButtonLink>
    ),
  };
}

export function ofFailedIngest(job: Schemas["ShownIngestJob"]): Problem {
  return {
    id: `ingest ${job.id}`,
    state: "failed",
    at: job.lastModified,
    what: (
      <span>
        <Link className="name" to={batchPlace(job.batch)}>
          {job.payloadName}
        </Link>{" "}
        <span className="faint">of</span> {job.batch} <span className="faint">in {job.collection}</span>
      </span>
    ),
    why: job.message || "It failed without a word.",
    way: job.resumesAt && <ResumeJob job={job} />,
  };
}

/** Ingest jobs that wait for a person, told once for each batch. */
export function ofHeldIngest(jobs: readonly Schemas["ShownIngestJob"][]): readonly Problem[] {
  return grouped(jobs, (job) => job.batch).map(([batch, [first, ...rest]]) => ({
    id: `held jobs ${batch}`,
    state: "held",
    at: newest([first, ...rest].map((job) => job.lastModified)),
    what: (
      <span>
        {plural(rest.length + 1, "job")} <span className="faint">of</span> <BatchName of={batch} /> <span className="faint">{rest.length ? "are" : "is"} held, in</span> <CollectionName of={first.collection} />
      </span>
    ),
    why: first.message || "A person says when to go on.",
    way: (
      <ButtonLink to={batchPlace(batch)} icon="right">
        The batch
      </ButtonLink>
    ),
  }));
}

export function ofBatch(batch: Schemas["ShownBatch"]): Problem {
  return {
    id: `batch ${batch.id}`,
    state: batch.status,
    at: batch.lastModified,
    what: (
      <span>
        <BatchName of={batch.id} /> <span className="faint">{batch.status === "held" ? "is held" : "failed"}, in</span> <CollectionName of={batch.collection} />
      </span>
    ),
    why: batch.message || (batch.status === "held" ? "A person says when to go on." : "It failed without a word."),
    way: (
      <ButtonLink to={batchPlace(batch.id)} icon="right">
        The batch
      </ButtonLink>
    ),
  };
}

export function ofQueue(hold: Schemas["Held"]): Problem {
  return {
    id: "queue",
    state: "paused",
    at: hold.since,
    what: <Link className="name" to="/ingest">The whole ingest queue is paused</Link>,
    why: saidBy(hold),
    way: <PauseQueue isHeld />,
  };
}

export function ofCollection(hold: Schemas["HeldCollection"]): Problem {
  return {
    id: `collection ${hold.name}`,
    state: "held",
    at: hold.since,
    what: (
      <span>
        <CollectionName of={hold.name} /> <span className="faint">is held: a collection</span>
      </span>
    ),
    why: saidBy(hold),
    way: <HoldCollection name={hold.name} isHeld />,
  };
}

const saidBy = ({ who, why }: { who: string; why: string }): string => `${who}: ${why || "no reason given"}`;

const newest = (times: readonly string[]): string => times.reduce((last, at) => (at > last ? at : last), "");

type Some<T> = readonly [T, ...T[]];

function grouped<T>(list: readonly T[], by: (each: T) => string): readonly (readonly [string, Some<T>])[] {
  const found = new Map<string, [T, ...T[]]>();
  for (const each of list) {
    const some = found.get(by(each));
    if (some) some.push(each);
    else found.set(by(each), [each]);
  }
  return [...found];
}
