/** The queries of the overview, and how complete their data is. */
import type { Problem as Refused, Schemas } from "../../api/client";
import { type Query, useGet } from "../../api/queries";
import { isComplete } from "./completeness";

/** The number of problems that are shown. */
export const SHOWN = 30;
/** The cap on each list of the overview data. */
const LISTED_MAX = 50;
/** A job with a stuck lot is shown by that lot alone, so read more jobs than are shown. */
const JOBS = SHOWN + LISTED_MAX;
const LOTS = 200;

type Now = Schemas["SystemOverview"];

export interface Sources {
  readonly queue: Schemas["Queue"] | undefined;
  readonly heldLots: Schemas["HeldLots"] | undefined;
  readonly stale: readonly Schemas["Work"][];
  readonly failedJobs: readonly Schemas["Job"][];
  readonly failedIngest: readonly Schemas["ShownIngestJob"][];
  readonly heldIngest: readonly Schemas["ShownIngestJob"][];
  readonly heldBatches: readonly Schemas["ShownBatch"][];
  readonly failedBatches: readonly Schemas["ShownBatch"][];
  /** The parts that are still being read. */
  readonly awaited: readonly string[];
  /** The parts that could not be read, and why. */
  readonly unread: readonly { readonly what: string; readonly why: string }[];
  /** Whether the lists have every problem. */
  readonly isWhole: boolean;
}

/** Whether data is missing: data stays without an answer, and an unknown namespace has none. */
const isMissing = ({ status }: Refused, value: unknown): boolean =>
  status !== 404 && (status !== 0 || value === undefined);

export function useSources(now: Now): Sources {
  const queue = useGet("/api/v1/ingest/queue", {});
  const heldLots = useGet("/api/v1/held-lots", { query: { limit: LOTS } });
  const stale = useGet("/api/v1/stale", { query: { limit: LOTS } });
  const failedJobs = useGet("/api/v1/jobs", { query: { lastRunStates: ["FAILED"], limit: JOBS } });
  const failedIngest = useGet("/api/v1/ingest/failed-jobs", { query: { limit: SHOWN } });
  const heldIngest = useGet("/api/v1/ingest/jobs", { query: { status: "held", limit: LOTS } });
  const heldBatches = useGet("/api/v1/ingest/batches", { query: { status: "held", limit: SHOWN } });
  const failedBatches = useGet("/api/v1/ingest/batches", {
    query: { status: "failed", limit: SHOWN },
  });
  const parts: readonly (readonly [string, Query<unknown>])[] = [
    ["the ingest queue", queue],
    ["held lots", heldLots],
    ["stale lots", stale],
    ["failed jobs", failedJobs],
    ["failed ingest jobs", failedIngest],
    ["held ingest jobs", heldIngest],
    ["held batches", heldBatches],
    ["failed batches", failedBatches],
  ];
  const stuck = now.work.reduce((sum, job) => sum + job.retryable + job.held, 0);
  return {
    queue: queue.data,
    heldLots: heldLots.data,
    stale: stale.data?.lots ?? [],
    failedJobs: failedJobs.data?.jobs ?? [],
    failedIngest: failedIngest.data?.jobs ?? [],
    heldIngest: heldIngest.data?.jobs ?? [],
    heldBatches: heldBatches.data?.batches ?? [],
    failedBatches: failedBatches.data?.batches ?? [],
    awaited: parts.filter(([, of]) => of.data === undefined && !of.error).map(([what]) => what),
    unread: parts.flatMap(([what, { error, data }]) =>
      error && isMissing(error, data)
        ? [{ what, why: error.status === 403 ? "your key may not read it" : error.message }]
        : [],
    ),
    isWhole:
      isComplete(now) &&
      stuck <= now.stuck.length &&
      Math.max(now.holds.length, now.late.length) < LISTED_MAX &&
      (heldLots.data?.totalCount ?? 0) <= LOTS &&
      (stale.data?.lots.length ?? 0) < LOTS &&
      (failedJobs.data?.totalCount ?? 0) <= JOBS &&
      !heldIngest.data?.next &&
      Math.max(
        failedIngest.data?.jobs.length ?? 0,
        heldBatches.data?.batches.length ?? 0,
        failedBatches.data?.batches.length ?? 0,
      ) < SHOWN,
  };
}
