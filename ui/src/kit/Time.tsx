import { createStore, useValue } from "../lib/store";
import { Timestamp } from "./Timestamp";
import { utcTime, ago, span } from "./format";

const TICK_MS = 5_000;
const now = createStore(Date.now());
setInterval(() => now.set(Date.now()), TICK_MS);

/** The current time, updated everywhere at once every few seconds. */
export const useNow = (): number => useValue(now);

/** A time as its age, with the full time in a tooltip; `full` shows both. */
export function Time({ at, full = false }: { at: string | null | undefined; full?: boolean }) {
  const current = useNow();
  if (!at) return <span className="faint">–</span>;
  const moment = Date.parse(at);
  // Some events have times that no browser parses.
  if (Number.isNaN(moment)) return <span>{at}</span>;
  return (
    <Timestamp at={at}>
      {full && `${utcTime(moment)} `}
      <span className="nowrap">
        {full && "· "}
        {ago(moment, current)}
      </span>
    </Timestamp>
  );
}

/** The duration from one time to another, or until now. */
export function Duration({
  from,
  to,
}: {
  from: string | null | undefined;
  to: string | null | undefined;
}) {
  const current = useNow();
  if (!from) return <span className="faint">–</span>;
  const end = to ? Date.parse(to) : current;
  return (
    <span className={to ? "" : "tone-active"}>
      {span(Math.max(0, end - Date.parse(from)) / 1000)}
    </span>
  );
}
