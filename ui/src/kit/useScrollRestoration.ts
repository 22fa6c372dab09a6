/** Saves the scroll position of a box with the history entry, and restores it. */
import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";
import { useHistoryEntry } from "../router/router";
import { saveScroll, savedScroll } from "../router/scrollState";

const USER_INPUT = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/**
 * Scroll a box to its saved position as soon as it is long enough, unless the user scrolls first.
 * Call the returned function on each scroll of the box.
 */
export function useScrollRestoration(name: string, box: RefObject<HTMLElement | null>): () => void {
  const entry = useHistoryEntry();
  const target = useRef<number | null>(null);
  useLayoutEffect(() => {
    const view = box.current;
    target.current = savedScroll(name);
    if (!view) return;
    const go = () => {
      if (target.current === null) return;
      view.scrollTop = target.current;
      if (Math.abs(view.scrollTop - target.current) < 1) stop();
    };
    const watcher = new MutationObserver(go);
    const stop = () => {
      target.current = null;
      watcher.disconnect();
      for (const kind of USER_INPUT) view.removeEventListener(kind, stop);
    };
    for (const kind of USER_INPUT) view.addEventListener(kind, stop, { passive: true });
    watcher.observe(view, { childList: true, subtree: true, attributeFilter: ["style"] });
    go();
    return stop;
  }, [name, box, entry]);
  return useCallback(() => {
    // While its rows load, a box also scrolls by itself.
    if (target.current === null && box.current) saveScroll(name, box.current.scrollTop);
  }, [name, box]);
}
