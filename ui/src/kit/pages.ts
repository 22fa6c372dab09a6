/** Reads a long list page by page, as its rows come into sight. */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type Ask, type AnswerOf, type PathOf, type Problem, urlOf } from "../api/client";
import { peek, watch } from "../api/store";
import { plural } from "./words";

const PAGE = 100;
/** Pages that are only passed are not read: who drags the bar to the end does not wait for them. */
const REST_MS = 80;

export interface Paged<T> {
  readonly count: number;
  readonly row: (at: number) => T | undefined;
  readonly onRange: (first: number, last: number) => void;
  readonly problem: Problem | undefined;
  readonly isReady: boolean;
  /** How many there are, in words. */
  readonly said: (one: string, many?: string) => string;
}

/** A list whose call takes `limit` and `offset`; `pick` finds its items and their number. */
export function usePages<P extends PathOf<"get">, T>(
  path: P,
  ask: Ask<"get", P>,
  pick: (answer: AnswerOf<"get", P>) => { items: readonly T[]; total: number },
): Paged<T> {
  const [range, setRange] = useState<readonly [number, number]>([0, 0]);
  const url = urlOf(path, ask as object);
  const urls = useMemo(() => {
    const join = url.includes("?") ? "&" : "?";
    const found: string[] = [];
    for (let page = range[0]; page <= range[1]; page += 1) found.push(`${url}${join}limit=${PAGE}&offset=${page * PAGE}`);
    return found;
  }, [url, range]);
  const subscribe = useCallback(
    (listener: () => void) => {
      const stops = urls.map((each) => watch(each, listener, true));
      return () => stops.forEach((stop) => stop());
    },
    [urls],
  );
  const stamp = useSyncExternalStore(subscribe, () => urls.map((each) => peek(each).at).join());
  const known = useRef<{ url: string; count: number }>({ url, count: 0 });
  if (known.current.url !== url) known.current = { url, count: 0 };
  const pages = useMemo(() => {
    const found = new Map<number, readonly T[]>();
    let problem: Problem | undefined;
    let isReady = false;
    for (const [at, each] of urls.entries()) {
      const loaded = peek<AnswerOf<"get", P>>(each);
      problem ??= loaded.problem;
      if (loaded.value === undefined) continue;
      const { items, total } = pick(loaded.value);
      found.set(range[0] + at, items);
      known.current.count = total;
      isReady = true;
    }
    return { found, problem, isReady };
    // `stamp` tells that a page was read.
  }, [urls, stamp]);
  const row = useCallback((at: number) => pages.found.get(Math.floor(at / PAGE))?.[at % PAGE], [pages]);
  const passed = useRef<{ from: number; to: number; at: number; timer?: ReturnType<typeof setTimeout> }>({ from: 0, to: 0, at: 0 });
  useEffect(() => () => clearTimeout(passed.current.timer), []);
  const onRange = useCallback((first: number, last: number) => {
    const from = Math.floor(first / PAGE);
    const to = Math.floor(Math.max(first, last - 1) / PAGE);
    const before = passed.current;
    if (before.from === from && before.to === to) return;
    clearTimeout(before.timer);
    const go = () => setRange([from, to]);
    const at = Date.now();
    if (at - before.at >= REST_MS) {
      passed.current = { from, to, at };
      go();
    } else passed.current = { from, to, at, timer: setTimeout(go, REST_MS) };
  }, []);
  const { count } = known.current;
  const isKnown = pages.isReady || count > 0;
  // What was read stays while nobody answers, which is said for the whole page.
  const problem = isKnown && pages.problem?.status === 0 ? undefined : pages.problem;
  return { count, row, onRange, problem, isReady: pages.isReady, said: (one, many) => (isKnown ? plural(count, one, many) : "reading…") };
}
