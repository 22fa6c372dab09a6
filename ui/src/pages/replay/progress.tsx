/** The progress of replays and backfills, and the actions on them. */
import { type AnswerOf, call } from "../../api/client";
import { ActionButton } from "../../kit/ActionButton";
import { Share } from "../../kit/Bars";
import { address } from "../../router/router";

export type Replay = AnswerOf<"get", "/api/v1/replays/{replay}">;
export type Backfill = AnswerOf<"get", "/api/v1/backfills/{backfill}">;

export const replayAddress = (id: string): string => address(["replay", id]);
export const backfillAddress = (id: string): string => address(["backfills", id]);

type Range = Pick<Backfill, "interval" | "first" | "last" | "count">;

/** The lots of a backfill: a range of intervals, or the first and the last of a list. */
export function lotsOf({ interval, first, last, count }: Range): string {
  if (interval !== null || count > 2) return `${first} … ${last}`;
  return count === 0 ? "no lots" : count === 1 ? first : `${first}, ${last}`;
}

export function ReplayShare({ of: replay }: { of: Replay }) {
  return (
    <Share
      of={replay.steps}
      parts={[
        { tone: "good", word: "done", value: replay.done },
        { tone: "active", word: "running", value: replay.going },
        { tone: "bad", word: "failed", value: replay.failed },
        { tone: "warn", word: "blocked", value: replay.blocked },
        { tone: "idle", word: "pending", value: replay.pending },
      ]}
    />
  );
}

export function BackfillShare({ of: backfill }: { of: Backfill }) {
  return (
    <Share
      of={backfill.count}
      parts={[
        { tone: "good", word: "done or good", value: backfill.done + backfill.good },
        { tone: "active", word: "running", value: backfill.going },
        { tone: "bad", word: "failed", value: backfill.failed },
        { tone: "held", word: "on hold", value: backfill.held },
        { tone: "idle", word: "waiting", value: backfill.waiting },
      ]}
    />
  );
}

interface Operation {
  /** Where the API has it. */
  path: "/api/v1/replays/{replay}" | "/api/v1/backfills/{backfill}";
  id: string;
  name: "replay" | "backfill";
  state: string;
  /** The effect of each action. */
  effects: { readonly pause: string; readonly resume: string; readonly cancel: string };
}

/** Pause, resume and cancel an open replay or backfill. */
function OperationActions({ path, id, name, state, effects }: Operation) {
  const variables = { replay: id, backfill: id };
  if (state !== "running" && state !== "paused") return null;
  return (
    <span className="row">
      {state === "running" ? (
        <ActionButton
          icon="pause"
          title={`Pause this ${name}?`}
          description={effects.pause}
          verb={`Pause ${name}`}
          send={(why) => call("post", `${path}/pause`, { path: variables, body: { why } })}
          done={`The ${name} is paused.`}
        >
          Pause
        </ActionButton>
      ) : (
        <ActionButton
          icon="play"
          kind="primary"
          title={`Resume this ${name}?`}
          description={effects.resume}
          verb={`Resume ${name}`}
          send={(why) => call("post", `${path}/resume`, { path: variables, body: { why } })}
          done={`The ${name} continues.`}
        >
          Resume
        </ActionButton>
      )}
      <ActionButton
        icon="cross"
        kind="danger"
        title={`Cancel this ${name}?`}
        description={effects.cancel}
        verb={`Cancel ${name}`}
        danger
        send={(why) => call("post", `${path}/cancel`, { path: variables, body: { why } })}
        done={`The ${name} is cancelled.`}
      >
        Cancel
      </ActionButton>
    </span>
  );
}

export function ReplayActions({ replay }: { replay: Replay }) {
  const left = replay.pending + replay.blocked;
  return (
    <OperationActions
      path="/api/v1/replays/{replay}"
      id={replay.id}
      name="replay"
      state={replay.state}
      effects={{
        pause: "No more steps start until it is resumed. Running steps finish.",
        resume: "Its next steps start, in order.",
        cancel: `No more steps start. Their jobs' own rules apply to the ${left} of ${replay.steps} that remain: stale lots are made again or held, and the rest stays as it is. Running steps finish. A cancelled replay cannot be resumed.`,
      }}
    />
  );
}

export function BackfillActions({ backfill }: { backfill: Backfill }) {
  return (
    <OperationActions
      path="/api/v1/backfills/{backfill}"
      id={backfill.id}
      name="backfill"
      state={backfill.state}
      effects={{
        pause: "No more lots start until it is resumed. Running lots finish.",
        resume: "Its next lots start.",
        cancel: "No more lots start. Running lots finish. A cancelled backfill cannot be resumed.",
      }}
    />
  );
}
