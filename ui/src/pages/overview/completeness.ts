/** Whether the overview data has every stuck lot although its counts are capped. */

/** The cap on the listed jobs, and on the counted lots of a job. */
const JOBS_MAX = 500;
const LOTS_MAX = 1000;

interface Counted {
  readonly atLeast: boolean;
  readonly work: readonly { readonly ready: number; readonly waiting: number }[];
}

/** A cap on ready or waiting lots hides no problem. */
export function isComplete({ atLeast, work }: Counted): boolean {
  const isOnlyCapped =
    work.length < JOBS_MAX && work.some((job) => Math.max(job.ready, job.waiting) >= LOTS_MAX);
  return !atLeast || isOnlyCapped;
}
