/** Whether the server answers at all: one truth for the whole page, by the last call that was made. */
import { useSyncExternalStore } from "react";

let isAway = false;
const watchers = new Set<() => void>();

export function noteAway(next: boolean): void {
  if (next === isAway) return;
  isAway = next;
  for (const watcher of watchers) watcher();
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export const useAway = (): boolean => useSyncExternalStore(watch, () => isAway);
