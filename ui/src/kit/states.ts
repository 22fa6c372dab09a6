/** Every state and stage that the page knows: the lists, and how each is shown. */
import type { Schemas } from "../api/client";
import type { IconName } from "./Icon";

export const RUN_STATES = [
  "RUNNING",
  "FAILED",
  "COMPLETED",
  "ABORTED",
  "NEW",
] as const satisfies readonly Schemas["Run"]["state"][];
export type RunState = (typeof RUN_STATES)[number];

export const WORK_STATES = [
  "READY",
  "RUNNING",
  "WAITING",
  "RETRYABLE",
  "HELD",
  "DONE",
] as const satisfies readonly Schemas["Work"]["state"][];
export type WorkState = (typeof WORK_STATES)[number];

/** The stages of an ingest job in their order, from `pending` to `completed`. */
export const STAGES = [
  "pending",
  "estimating",
  "provisioning",
  "downloading",
  "processing",
  "recording",
  "notify",
  "completed",
] as const satisfies readonly Schemas["ShownIngestJob"]["status"][];

/** The stages in which a daemon works on a job. */
export const ACTIVE_STAGES = STAGES.slice(1, -1);

/** The stages and the two states in which an ingest job stops. */
export const INGEST_STATES = [...STAGES, "held", "failed"] as const;
export type IngestState = (typeof INGEST_STATES)[number];

export const BATCH_STATES = [
  "pending",
  "held",
  "processing",
  "reporting",
  "update-reporting",
  "completed",
  "failed",
] as const satisfies readonly Schemas["ShownBatch"]["status"][];
export type BatchState = (typeof BATCH_STATES)[number];

/** The states of a batch before its first report. */
export const UNREPORTED_STATES: readonly string[] = ["pending", "held", "processing"];

/** The states in which a batch or an ingest job has ended. */
export const ENDED_STATES: readonly string[] = ["completed", "failed", "deleted"];

export const STEP_STATES = ["pending", "going", "done", "failed", "blocked"] as const;
export type StepState = (typeof STEP_STATES)[number];

/** A lot behind the last range that the server listed. */
export const UNLISTED = "not listed";

/** The kinds of lots that a grid tells apart from `there`, in the order of its legend. */
export const LOT_KINDS: readonly string[] = [
  "missing",
  "waiting",
  "running",
  "partial",
  "held",
  "empty",
  "removed",
  UNLISTED,
];

/** The seven tones; each has a color and an icon of its own. */
export type Tone = "good" | "active" | "idle" | "bad" | "held" | "warn" | "none";

export interface Look {
  readonly tone: Tone;
  readonly icon: IconName;
  readonly word: string;
}

const GOOD: Omit<Look, "word"> = { tone: "good", icon: "check" };
const ACTIVE: Omit<Look, "word"> = { tone: "active", icon: "play" };
const IDLE: Omit<Look, "word"> = { tone: "idle", icon: "clock" };
const BAD: Omit<Look, "word"> = { tone: "bad", icon: "cross" };
const HELD: Omit<Look, "word"> = { tone: "held", icon: "hand" };
const WARN: Omit<Look, "word"> = { tone: "warn", icon: "alert" };
const NONE: Omit<Look, "word"> = { tone: "none", icon: "empty" };

const LOOKS: Readonly<Record<string, Omit<Look, "word">>> = {
  // runs
  NEW: IDLE,
  RUNNING: ACTIVE,
  COMPLETED: GOOD,
  FAILED: BAD,
  ABORTED: WARN,
  // lots and work
  READY: GOOD,
  DONE: GOOD,
  ERROR: BAD,
  HOLD: HELD,
  HELD,
  PENDING: IDLE,
  RESUBMIT: WARN,
  WAITING: IDLE,
  RETRYABLE: WARN,
  // manifests and gaps
  complete: GOOD,
  partial: { tone: "warn", icon: "half" },
  missing: BAD,
  running: ACTIVE,
  empty: NONE,
  removed: NONE,
  waiting: IDLE,
  there: GOOD,
  "will run": IDLE,
  [UNLISTED]: { tone: "none", icon: "dot" },
  // ingest
  ...Object.fromEntries(ACTIVE_STAGES.map((stage) => [stage, ACTIVE])),
  pending: IDLE,
  held: HELD,
  completed: GOOD,
  failed: BAD,
  deleted: NONE,
  reporting: ACTIVE,
  "update-reporting": ACTIVE,
  // backfills and replays
  done: GOOD,
  paused: HELD,
  cancelled: NONE,
  good: GOOD,
  ready: IDLE,
  later: WARN,
  stale: WARN,
  late: { tone: "warn", icon: "late" },
  "out of tries": BAD,
  going: ACTIVE,
  blocked: WARN,
  rerun: { tone: "active", icon: "replay" },
  follow: IDLE,
  leave: HELD,
};

/** How a state is shown; an unknown state has a plain look. */
export function lookOf(state: string | null | undefined): Look {
  if (!state) return { ...NONE, word: "none" };
  const look = LOOKS[state] ?? { tone: "none", icon: "dot" };
  return { ...look, word: state.toLowerCase().replaceAll("_", " ") };
}
