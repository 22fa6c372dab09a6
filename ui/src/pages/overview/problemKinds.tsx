/** The kinds of problems: the subject, the cause, the time and the remedy of each. */
import type { ReactNode } from "react";
import { AcceptLotButton, ReleaseLotButton } from "../../actions/lots";
import { EndHold, EndWorkHold, RetryButton } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { ButtonLink } from "../../kit/Button";
import { DatasetLink, JobLink, LotLink, WorkLink } from "../../kit/links";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/format";
import { Link } from "../../router/Link";
import { gapsAddress, runAddress } from "../../router/addresses";
import { address } from "../../router/router";
import { HoldCollectionButton, HoldQueueButton, ResumeJobButton } from "../ingest/actions";
import { BatchLink, batchAddress, CollectionLink } from "../ingest/links";

export interface Problem {
  readonly id: string;
  readonly state: string;
  readonly at: string;
  readonly what: ReactNode;
  readonly why: ReactNode;
  readonly remedy: ReactNode;
}

export function stuckLotProblem(lot: Schemas["StuckLot"]): Problem {
  const job = { namespace: lot.namespace, name: lot.job };
  const isHeld = lot.state === "HELD";
  const outOfTries = isHeld && lot.attempts >= lot.attemptsMax;
  return {
    id: `lot ${lot.namespace}/${lot.job}/${lot.lot}`,
    state: isHeld && !outOfTries ? "HELD" : "FAILED",
    at: lot.since,
    what: (
      <span>
        <JobLink of={job} /> <span className="faint">on</span> <WorkLink job={job} lot={lot.lot} />
      </span>
    ),
    why: (
      <>
        {lot.error || (lot.held ? `On hold: ${lot.held}` : "It failed without a message.")}{" "}
        <span className="faint">
          {outOfTries && `· Out of tries (${lot.attempts} of ${lot.attemptsMax}).`}
          {lot.state === "RETRYABLE" && (
            <>
              · Try {lot.attempts} of {lot.attemptsMax}; again <Time at={lot.notBefore} />.
            </>
          )}
        </span>
      </>
    ),
    remedy: isHeld ? (
      <EndWorkHold
        namespace={lot.namespace}
        job={lot.job}
        lot={lot.lot}
        heldLotOf={lot.heldLotOf}
        isOutOfTries={outOfTries}
      />
    ) : (
      <RetryButton namespace={lot.namespace} job={lot.job} lot={lot.lot} />
    ),
  };
}

export function holdProblem(hold: Schemas["HeldWhole"]): Problem {
  const name = { namespace: hold.namespace, name: hold.name };
  const isDataset = hold.kind === "DATASET";
  return {
    id: `hold ${hold.kind} ${hold.namespace}/${hold.name}`,
    state: "HELD",
    at: hold.since,
    what: (
      <span>
        {isDataset ? <DatasetLink of={name} /> : <JobLink of={name} />}{" "}
        <span className="faint">is on hold</span>
      </span>
    ),
    why: holdText(hold),
    remedy: <EndHold hold={hold} />,
  };
}

export function heldLotProblem(lot: Schemas["HeldLot"]): Problem {
  const dataset = { namespace: lot.namespace, name: lot.dataset };
  return {
    id: `held ${lot.namespace}/${lot.dataset}/${lot.lot}`,
    state: lot.byHand ? "HELD" : "FAILED",
    at: lot.since,
    what: (
      <span>
        <LotLink dataset={dataset} lot={lot.lot} /> <span className="faint">of</span>{" "}
        <DatasetLink of={dataset} /> <span className="faint">is on hold</span>
      </span>
    ),
    why: lot.byHand
      ? holdText(lot)
      : `Its checks failed${lot.why && ` (${lot.why})`}. Accept the lot, or make it again.`,
    remedy: lot.byHand ? <ReleaseLotButton lot={lot} /> : <AcceptLotButton lot={lot} />,
  };
}

/** Stale lots that no rule makes again: one problem for each job. */
export function staleProblems(lots: readonly Schemas["Work"][]): readonly Problem[] {
  const left = lots.filter((work) => work.state === "DONE");
  return grouped(left, (work) => `${work.namespace}/${work.job}`).map(([id, [first, ...rest]]) => {
    const job = { namespace: first.namespace, name: first.job };
    return {
      id: `stale ${id}`,
      state: "stale",
      at: newest([first, ...rest].map((work) => work.staleSince ?? "")),
      what: (
        <span>
          <JobLink of={job} /> <span className="faint">has stale lots</span>
        </span>
      ),
      why: `${plural(rest.length + 1, "lot")} ${rest.length ? "are" : "is"} older than ${rest.length ? "their" : "its"} inputs, such as ${first.lot}. Decide whether to resubmit ${rest.length ? "them" : "it"}.`,
      remedy: (
        <ButtonLink
          to={address(["quality"], { tab: "stale", namespace: first.namespace, job: first.job })}
          icon="right"
        >
          Show lots
        </ButtonLink>
      ),
    };
  });
}

export function lateProblem(late: Schemas["LateDataset"]): Problem {
  const dataset = { namespace: late.namespace, name: late.dataset };
  return {
    id: `late ${late.namespace}/${late.dataset}`,
    state: "late",
    at: late.since,
    what: (
      <span>
        <DatasetLink of={dataset} /> <span className="faint">is late</span>
      </span>
    ),
    why: `${plural(late.count, "lot")} of ${late.interval} ${late.count === 1 ? "is" : "are"} due, from ${late.first} on.`,
    remedy: (
      <ButtonLink to={gapsAddress(dataset, late.first)} icon="right">
        Why
      </ButtonLink>
    ),
  };
}

export function failedJobProblem(job: Schemas["Job"]): Problem {
  const run = job.latestRun;
  return {
    id: `job ${job.namespace}/${job.name}`,
    state: "FAILED",
    at: run?.endedAt ?? job.updatedAt,
    what: <JobLink of={job.id} />,
    why: run?.cause ?? "Its latest run failed without a cause.",
    remedy: run && (
      <ButtonLink to={runAddress(run.id)} icon="right">
        Open run
      </ButtonLink>
    ),
  };
}

export function failedIngestProblem(job: Schemas["ShownIngestJob"]): Problem {
  return {
    id: `ingest ${job.id}`,
    state: "failed",
    at: job.lastModified,
    what: (
      <span>
        <Link className="name" to={batchAddress(job.batch)}>
          {job.payloadName}
        </Link>{" "}
        <span className="faint">of</span> {job.batch}{" "}
        <span className="faint">in {job.collection}</span>
      </span>
    ),
    why: job.message || "It failed without a message.",
    remedy: job.resumesAt && <ResumeJobButton job={job} />,
  };
}

/** Held ingest jobs: one problem for each batch. */
export function heldIngestProblems(jobs: readonly Schemas["ShownIngestJob"][]): readonly Problem[] {
  return grouped(jobs, (job) => job.batch).map(([batch, [first, ...rest]]) => ({
    id: `held jobs ${batch}`,
    state: "held",
    at: newest([first, ...rest].map((job) => job.lastModified)),
    what: (
      <span>
        {plural(rest.length + 1, "job")} <span className="faint">of</span> <BatchLink of={batch} />{" "}
        <span className="faint">{rest.length ? "are" : "is"} on hold, in</span>{" "}
        <CollectionLink of={first.collection} />
      </span>
    ),
    why: first.message || "Release the hold to continue.",
    remedy: (
      <ButtonLink to={batchAddress(batch)} icon="right">
        Open batch
      </ButtonLink>
    ),
  }));
}

export function batchProblem(batch: Schemas["ShownBatch"]): Problem {
  return {
    id: `batch ${batch.id}`,
    state: batch.status,
    at: batch.lastModified,
    what: (
      <span>
        <BatchLink of={batch.id} />{" "}
        <span className="faint">{batch.status === "held" ? "is on hold" : "failed"}, in</span>{" "}
        <CollectionLink of={batch.collection} />
      </span>
    ),
    why:
      batch.message ||
      (batch.status === "held" ? "Release the hold to continue." : "It failed without a message."),
    remedy: (
      <ButtonLink to={batchAddress(batch.id)} icon="right">
        Open batch
      </ButtonLink>
    ),
  };
}

export function queueProblem(hold: Schemas["Held"]): Problem {
  return {
    id: "queue",
    state: "held",
    at: hold.since,
    what: (
      <Link className="name" to="/ingest">
        The ingest queue is on hold
      </Link>
    ),
    why: holdText(hold),
    remedy: <HoldQueueButton isHeld />,
  };
}

export function collectionProblem(hold: Schemas["HeldCollection"]): Problem {
  return {
    id: `collection ${hold.name}`,
    state: "held",
    at: hold.since,
    what: (
      <span>
        <span className="faint">Collection</span> <CollectionLink of={hold.name} />{" "}
        <span className="faint">is on hold</span>
      </span>
    ),
    why: holdText(hold),
    remedy: <HoldCollectionButton name={hold.name} isHeld />,
  };
}

const holdText = ({ who, why }: { who: string; why: string }): string =>
  `${who}: ${why || "no reason given"}`;

const newest = (times: readonly string[]): string =>
  times.reduce((last, at) => (at > last ? at : last), "");

type Some<T> = readonly [T, ...T[]];

function grouped<T>(
  list: readonly T[],
  by: (each: T) => string,
): readonly (readonly [string, Some<T>])[] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const each of list) {
    const some = groups.get(by(each));
    if (some) some.push(each);
    else groups.set(by(each), [each]);
  }
  return [...groups];
}
