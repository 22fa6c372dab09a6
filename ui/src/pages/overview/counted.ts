/** Whether the standing counts all that is stuck, though it stops counting what there is much of. */

/** How many jobs with open lots it tells at most, and how many lots of one it counts. */
const JOBS_TOLD = 500;
const COUNTED = 1000;

interface Counted {
  readonly atLeast: boolean;
  readonly work: readonly { readonly ready: number; readonly waiting: number }[];
}

/** That more lots are ready or waiting than were counted hides no problem. */
export function isCounted({ atLeast, work }: Counted): boolean {
  const isMuchOnly = work.length < JOBS_TOLD && work.some((job) => Math.max(job.ready, job.waiting) >= COUNTED);
  return !atLeast || isMuchOnly;
}
