/** The way of an ingest job, and how jobs are spread over it. */
import type { Schemas } from "../../api/client";
import type { Bar } from "../../kit/Bars";
import { lookOf } from "../../kit/status";

export type Tally = Readonly<Record<string, Schemas["StateTally"]>>;

/** The stages in the order a job goes through them. */
export const STAGES = ["pending", "estimating", "provisioning", "downloading", "processing", "recording", "notify", "completed"] as const;
/** Where a job is when it does not go on by itself. */
export const STOPPED = ["held", "failed"] as const;
export const JOB_STATES = [...STAGES, ...STOPPED] as const;
export const BATCH_STATES = ["pending", "held", "processing", "reporting", "update-reporting", "completed", "failed"] as const;

export type JobState = (typeof JOB_STATES)[number];
export type BatchState = (typeof BATCH_STATES)[number];

export const jobsIn = (tally: Tally, state: string): number => tally[state]?.jobs ?? 0;
export const bytesIn = (tally: Tally, state: string): number => tally[state]?.bytes ?? 0;

/** How many jobs have not ended. */
export const openJobs = (tally: Tally): number => STAGES.filter((stage) => stage !== "completed").reduce((sum, stage) => sum + jobsIn(tally, stage), 0);

/** The jobs of a batch as parts of one bar: what is done first, what failed last. */
export function sharesOf(tally: Tally): Bar["parts"] {
  const under = STAGES.slice(1, -1).reduce((sum, stage) => sum + jobsIn(tally, stage), 0);
  return [
    { tone: lookOf("completed").tone, word: "completed", value: jobsIn(tally, "completed") },
    { tone: lookOf("processing").tone, word: "under way", value: under },
    { tone: lookOf("pending").tone, word: "pending", value: jobsIn(tally, "pending") },
    { tone: lookOf("held").tone, word: "held", value: jobsIn(tally, "held") },
    { tone: lookOf("failed").tone, word: "failed", value: jobsIn(tally, "failed") },
  ];
}

/** So many in so many seconds, as people say it: by the second, the minute or the hour. */
export function rate(value: number, seconds: number): readonly [number, "s" | "min" | "h"] | null {
  if (value <= 0 || seconds <= 0) return null;
  const each = value / seconds;
  if (each >= 1) return [each, "s"];
  return each * 60 >= 1 ? [each * 60, "min"] : [each * 3600, "h"];
}

export interface Stay {
  readonly status: string;
  readonly at: string;
  /** How long the job was there, in seconds; undefined while it is. */
  readonly seconds: number | undefined;
}

/** How long a job stayed in each state that it came to. */
export function stays(history: readonly Schemas["ReachedState"][]): readonly Stay[] {
  return history.map((step, place) => {
    const next = history[place + 1];
    return { status: step.status, at: step.at, seconds: next && (Date.parse(next.at) - Date.parse(step.at)) / 1000 };
  });
}
