/** Counts of ingest jobs by state, and the history of one job. */
import type { Schemas } from "../../api/client";
import type { Bar } from "../../kit/Bars";
import { ACTIVE_STAGES, lookOf, STAGES } from "../../kit/states";

export type Tally = Readonly<Record<string, Schemas["StateTally"]>>;

export const jobsIn = (tally: Tally, state: string): number => tally[state]?.jobs ?? 0;
export const bytesIn = (tally: Tally, state: string): number => tally[state]?.bytes ?? 0;

/** Count the jobs that have not ended. */
export const openJobs = (tally: Tally): number =>
  STAGES.filter((stage) => stage !== "completed").reduce(
    (sum, stage) => sum + jobsIn(tally, stage),
    0,
  );

/** The jobs of a batch as the parts of one bar, from completed to failed. */
export function sharesOf(tally: Tally): Bar["parts"] {
  const running = ACTIVE_STAGES.reduce((sum, stage) => sum + jobsIn(tally, stage), 0);
  return [
    { tone: lookOf("completed").tone, word: "completed", value: jobsIn(tally, "completed") },
    { tone: lookOf("processing").tone, word: "running", value: running },
    { tone: lookOf("pending").tone, word: "pending", value: jobsIn(tally, "pending") },
    { tone: lookOf("held").tone, word: "on hold", value: jobsIn(tally, "held") },
    { tone: lookOf("failed").tone, word: "failed", value: jobsIn(tally, "failed") },
  ];
}

/** Compute a rate by the second, minute or hour: the first that leaves a number above one. */
export function rate(value: number, seconds: number): readonly [number, "s" | "min" | "h"] | null {
  if (value <= 0 || seconds <= 0) return null;
  const each = value / seconds;
  if (each >= 1) return [each, "s"];
  return each * 60 >= 1 ? [each * 60, "min"] : [each * 3600, "h"];
}

export interface Stay {
  readonly status: string;
  readonly at: string;
  /** The duration; undefined for the current state. */
  readonly seconds: number | undefined;
}

/** List how long a job stayed in each state. */
export function stays(history: readonly Schemas["ReachedState"][]): readonly Stay[] {
  return history.map((step, place) => {
    const next = history[place + 1];
    return {
      status: step.status,
      at: step.at,
      seconds: next && (Date.parse(next.at) - Date.parse(step.at)) / 1000,
    };
  });
}
