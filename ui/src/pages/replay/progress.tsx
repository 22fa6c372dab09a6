/** How far replays and backfills are, and what can be done with them. */
import { type AnswerOf, call } from "../../api/client";
import { Act } from "../../kit/Act";
import { Share } from "../../kit/Bars";
import { address } from "../../router/router";

export type Replay = AnswerOf<"get", "/api/v1/replays/{replay}">;
export type Backfill = AnswerOf<"get", "/api/v1/backfills/{backfill}">;

export const replayPlace = (id: string): string => address(["replay", id]);
export const backfillPlace = (id: string): string => address(["backfills", id]);

/** The lots of a backfill: a range of intervals, or a list whose first and last are shown. */
export function lotsOf({ interval, first, last, count }: Pick<Backfill, "interval" | "first" | "last" | "count">): string {
  if (interval !== null || count > 2) return `${first} … ${last}`;
  return count === 0 ? "no lots" : count === 1 ? first : `${first}, ${last}`;
}

export function ReplayShare({ of: replay }: { of: Replay }) {
  return (
    <Share
      of={replay.steps}
      parts={[
        { tone: "good", word: "done", value: replay.done },
        { tone: "active", word: "going", value: replay.going },
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
        { tone: "active", word: "going", value: backfill.going },
        { tone: "bad", word: "failed", value: backfill.failed },
        { tone: "held", word: "held", value: backfill.held },
        { tone: "idle", word: "waiting", value: backfill.waiting },
      ]}
    />
  );
}

const isOpen = (state: string): boolean => state === "running" || state === "paused";

export function SteerReplay({ replay }: { replay: Replay }) {
  const path = { replay: replay.id };
  if (!isOpen(replay.state)) return null;
  return (
    <span className="row">
      {replay.state === "running" ? (
        <Act icon="pause" ask={{ title: "Pause this replay?", says: "No more steps are set going until it is resumed. Those that go end by themselves.", verb: "Pause the replay", reason: "needed" }} run={(why) => call("post", "/api/v1/replays/{replay}/pause", { path, body: { why } })} done="The replay is paused.">
          Pause
        </Act>
      ) : (
        <Act icon="play" kind="primary" ask={{ title: "Let this replay go on?", says: "Its next steps are set going, in order.", verb: "Let it go on", reason: "needed" }} run={(why) => call("post", "/api/v1/replays/{replay}/resume", { path, body: { why } })} done="The replay goes on.">
          Resume
        </Act>
      )}
      <Act icon="cross" kind="danger" ask={{ title: "Cancel this replay?", says: `No more steps are set going, for good: ${replay.pending + replay.blocked} of ${replay.steps} are left to their own rule: what is stale is made again or held as its job says, and the rest stays as it is. Those that go end by themselves.`, verb: "Cancel the replay", danger: true, reason: "needed" }} run={(why) => call("post", "/api/v1/replays/{replay}/cancel", { path, body: { why } })} done="The replay is cancelled.">
        Cancel
      </Act>
    </span>
  );
}

export function SteerBackfill({ backfill }: { backfill: Backfill }) {
  const path = { backfill: backfill.id };
  if (!isOpen(backfill.state)) return null;
  return (
    <span className="row">
      {backfill.state === "running" ? (
        <Act icon="pause" ask={{ title: "Pause this backfill?", says: "No more lots are set going until it is resumed. Those that go end by themselves.", verb: "Pause the backfill", reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/pause", { path, body: { why } })} done="The backfill is paused.">
          Pause
        </Act>
      ) : (
        <Act icon="play" kind="primary" ask={{ title: "Let this backfill go on?", says: "Its next lots are set going.", verb: "Let it go on", reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/resume", { path, body: { why } })} done="The backfill goes on.">
          Resume
        </Act>
      )}
      <Act icon="cross" kind="danger" ask={{ title: "Cancel this backfill?", says: "No more lots are set going, for good. What was set going ends by itself.", verb: "Cancel the backfill", danger: true, reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/cancel", { path, body: { why } })} done="The backfill is cancelled.">
        Cancel
      </Act>
    </span>
  );
}
