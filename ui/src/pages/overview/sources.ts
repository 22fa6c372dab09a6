/** Everything that the overview reads, and how much of it is known. */
import type { Problem as Refused, Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { Loaded } from "../../api/store";
import { isCounted } from "./counted";

/** How many problems are shown. */
export const SHOWN = 30;
/** How many of a kind `standing` tells at most. */
const TOLD = 50;
/** A job with a stuck lot is told with that lot alone, so more jobs are asked for than are shown. */
const JOBS = SHOWN + TOLD;
const LOTS = 200;

type Now = Schemas["StandingNow"];

export interface Sources {
  readonly queue: Schemas["Queue"] | undefined;
  readonly heldLots: Schemas["HeldLots"] | undefined;
  readonly stale: readonly Schemas["Work"][];
  readonly failedJobs: readonly Schemas["Job"][];
  readonly failedIngest: readonly Schemas["ShownIngestJob"][];
  readonly heldIngest: readonly Schemas["ShownIngestJob"][];
  readonly heldBatches: readonly Schemas["ShownBatch"][];
  readonly failedBatches: readonly Schemas["ShownBatch"][];
  /** What is still being read. */
  readonly awaited: readonly string[];
  /** What could not be read, and why. */
  readonly unread: readonly { readonly what: string; readonly why: string }[];
  /** Whether all there is was given: otherwise nobody knows how much there is. */
  readonly isWhole: boolean;
}

/** Whether something is not shown for it: what was read stays, and a namespace that nobody told of has nothing. */
const isLack = ({ status }: Refused, value: unknown): boolean => status !== 404 && (status !== 0 || value === undefined);

export function useSources(now: Now): Sources {
  const queue = useGet("/api/v1/ingest/queue", {});
  const heldLots = useGet("/api/v1/held-lots", { query: { limit: LOTS } });
  const stale = useGet("/api/v1/stale", { query: { limit: LOTS } });
  const failedJobs = useGet("/api/v1/jobs", { query: { lastRunStates: ["FAILED"], limit: JOBS } });
  const failedIngest = useGet("/api/v1/ingest/failed-jobs", { query: { limit: SHOWN } });
  const heldIngest = useGet("/api/v1/ingest/jobs", { query: { status: "held", limit: LOTS } });
  const heldBatches = useGet("/api/v1/ingest/batches", { query: { status: "held", limit: SHOWN } });
  const failedBatches = useGet("/api/v1/ingest/batches", { query: { status: "failed", limit: SHOWN } });
  const parts: readonly (readonly [string, Loaded<unknown>])[] = [
    ["the ingest queue", queue],
    ["held lots", heldLots],
    ["stale lots", stale],
    ["failed jobs", failedJobs],
    ["failed ingest jobs", failedIngest],
    ["held ingest jobs", heldIngest],
    ["held batches", heldBatches],
    ["failed batches", failedBatches],
  ];
  const stuck = now.work.reduce((sum, job) => sum + job.later + job.held, 0);
  return {
    queue: queue.value,
    heldLots: heldLots.value,
    stale: stale.value?.lots ?? [],
    failedJobs: failedJobs.value?.jobs ?? [],
    failedIngest: failedIngest.value?.jobs ?? [],
    heldIngest: heldIngest.value?.jobs ?? [],
    heldBatches: heldBatches.value?.batches ?? [],
    failedBatches: failedBatches.value?.batches ?? [],
    awaited: parts.filter(([, of]) => of.value === undefined && !of.problem).map(([what]) => what),
    unread: parts.flatMap(([what, { problem, value }]) => (problem && isLack(problem, value) ? [{ what, why: problem.status === 403 ? "your key may not see it" : problem.message }] : [])),
    isWhole:
      isCounted(now) &&
      stuck <= now.stuck.length &&
      Math.max(now.holds.length, now.late.length) < TOLD &&
      (heldLots.value?.totalCount ?? 0) <= LOTS &&
      (stale.value?.lots.length ?? 0) < LOTS &&
      (failedJobs.value?.totalCount ?? 0) <= JOBS &&
      !heldIngest.value?.next &&
      Math.max(failedIngest.value?.jobs.length ?? 0, heldBatches.value?.batches.length ?? 0, failedBatches.value?.batches.length ?? 0) < SHOWN,
  };
}
