/** Keeps how far something was scrolled with the entry of the history, and goes there again. */
import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";
import { useEntry } from "../router/router";
import { keepTop, topOf } from "../router/scrolled";

const BY_HAND = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/**
 * Takes a box back to where it was left, as soon as there is enough in it, unless somebody
 * scrolls first; `onScroll` is to be told of every scrolling of the box.
 */
export function useKeptScroll(name: string, box: RefObject<HTMLElement | null>): () => void {
  const entry = useEntry();
  const wanted = useRef<number | null>(null);
  useLayoutEffect(() => {
    const view = box.current;
    wanted.current = topOf(name);
    if (!view) return;
    const go = () => {
      if (wanted.current === null) return;
      view.scrollTop = wanted.current;
      if (Math.abs(view.scrollTop - wanted.current) < 1) stop();
    };
    const watcher = new MutationObserver(go);
    const stop = () => {
      wanted.current = null;
      watcher.disconnect();
      for (const kind of BY_HAND) view.removeEventListener(kind, stop);
    };
    for (const kind of BY_HAND) view.addEventListener(kind, stop, { passive: true });
    watcher.observe(view, { childList: true, subtree: true, attributeFilter: ["style"] });
    go();
    return stop;
  }, [name, box, entry]);
  return useCallback(() => {
    // What is not there yet moves a box too.
    if (wanted.current === null && box.current) keepTop(name, box.current.scrollTop);
  }, [name, box]);
}
