/** Whether the screen is as narrow as that of a phone; `kit.css` has the same width. */
import { useSyncExternalStore } from "react";

const NARROW = window.matchMedia("(max-width: 760px)");

function watch(watcher: () => void): () => void {
  NARROW.addEventListener("change", watcher);
  return () => NARROW.removeEventListener("change", watcher);
}

export const useNarrow = (): boolean => useSyncExternalStore(watch, () => NARROW.matches);
