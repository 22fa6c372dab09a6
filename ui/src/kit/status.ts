/** One table for what every state of every machine looks like: a tone, an icon, a word. */
import type { IconName } from "./Icon";

/** The seven ways a thing can stand; each has a colour and an icon of its own. */
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
  NEW: IDLE, RUNNING: ACTIVE, COMPLETED: GOOD, FAILED: BAD, ABORTED: WARN,
  // lots and work
  READY: GOOD, DONE: GOOD, ERROR: BAD, HOLD: HELD, HELD: HELD, PENDING: IDLE, RESUBMIT: WARN, WAITING: IDLE, LATER: WARN,
  // arcs, manifests, gaps
  complete: GOOD, partial: { tone: "warn", icon: "half" }, missing: BAD, running: ACTIVE, empty: NONE, removed: NONE,
  waiting: IDLE, there: GOOD, "will run": IDLE, "not told": { tone: "none", icon: "dot" },
  // ingest
  pending: IDLE, held: HELD, estimating: ACTIVE, provisioning: ACTIVE, downloading: ACTIVE, processing: ACTIVE,
  recording: ACTIVE, notify: ACTIVE, completed: GOOD, failed: BAD, deleted: NONE, reporting: ACTIVE, "update-reporting": ACTIVE,
  // backfills and replays
  done: GOOD, paused: HELD, cancelled: NONE, good: GOOD, ready: IDLE, later: WARN, stale: WARN, late: { tone: "warn", icon: "late" },
  "out of tries": BAD,
  going: ACTIVE, blocked: WARN, rerun: { tone: "active", icon: "replay" }, follow: IDLE, leave: HELD,
};

/** How a state is shown; one that is not known is shown plainly. */
export function lookOf(state: string | null | undefined): Look {
  if (!state) return { ...NONE, word: "none" };
  return { ...(LOOKS[state] ?? { tone: "none", icon: "dot" }), word: state.toLowerCase().replaceAll("_", " ") };
}
