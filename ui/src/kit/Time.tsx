import { useSyncExternalStore } from "react";
import { Moment } from "./Moment";
import { absolute, ago, span } from "./words";

const TICK_MS = 5_000;
let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const watcher of watchers) watcher();
}, TICK_MS);

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** The time now, all places at once, every few seconds. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}

/** A moment: how long ago, and in full when pointed at; or both with `full`. */
export function Time({ at, full = false }: { at: string | null | undefined; full?: boolean }) {
  const shown = useNow();
  if (!at) return <span className="faint">–</span>;
  const moment = Date.parse(at);
  // Events are shown as they came, and some write times as no browser reads them.
  if (Number.isNaN(moment)) return <span>{at}</span>;
  return (
    <Moment at={at}>
      {full && `${absolute(moment)} `}
      <span className="nowrap">{full && "· "}{ago(moment, shown)}</span>
    </Moment>
  );
}

/** How long something took, or has taken so far. */
export function Lasted({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const shown = useNow();
  if (!from) return <span className="faint">–</span>;
  const end = to ? Date.parse(to) : shown;
  return <span className={to ? "" : "tone-active"}>{span(Math.max(0, end - Date.parse(from)) / 1000)}</span>;
}
