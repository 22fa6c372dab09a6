/** A long list that is read page by page, as its rows come into view. */
import { useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { type Ask, type AnswerOf, type PathOf, type Problem, urlOf } from "../api/client";
import { type Query, queryOf } from "../api/queries";
import { plural } from "./format";

const PAGE = 100;
/** Pages that a dragged scroll bar passes within this time are not read. */
const REST_MS = 80;

export interface PagedList<T> {
  readonly count: number;
  readonly row: (at: number) => T | undefined;
  readonly onRange: (first: number, last: number) => void;
  readonly problem: Problem | undefined;
  readonly isReady: boolean;
  /** The number of rows, in words. */
  readonly countText: (one: string, many?: string) => string;
}

/** Read a list whose call takes `limit` and `offset`; `pick` finds its rows and their number. */
export function usePagedList<P extends PathOf<"get">, T>(
  path: P,
  ask: Ask<"get", P>,
  pick: (answer: AnswerOf<"get", P>) => { items: readonly T[]; total: number },
): PagedList<T> {
  const { first, last, onRange } = usePageRange();
  const url = urlOf(path, ask as object);
  const numbers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const join = url.includes("?") ? "&" : "?";
  const pages: readonly Query<AnswerOf<"get", P>>[] = useQueries({
    queries: numbers.map((page) =>
      queryOf<AnswerOf<"get", P>>(`${url}${join}limit=${PAGE}&offset=${page * PAGE}`),
    ),
  });
  const lists = pages.map(({ data }) => (data === undefined ? undefined : pick(data)));
  const isReady = lists.some((list) => list !== undefined);
  const total = lists.findLast((list) => list !== undefined)?.total;
  // The count stays while other pages of the same list are read.
  const [known, setKnown] = useState({ url, count: 0 });
  const count = total ?? (known.url === url ? known.count : 0);
  if (known.url !== url || known.count !== count) setKnown({ url, count });
  const problem = pages.find(({ error }) => error)?.error ?? undefined;
  const isKnown = isReady || count > 0;
  return {
    count,
    row: (at) => lists[Math.floor(at / PAGE) - first]?.items[at % PAGE],
    onRange,
    // The page reports once that the server does not answer; what was read stays.
    problem: isKnown && problem?.status === 0 ? undefined : problem,
    isReady,
    countText: (one, many) => (isKnown ? plural(count, one, many) : "reading…"),
  };
}

/** The pages of the rows in view; `onRange` takes the first and the last row. */
function usePageRange() {
  const [range, setRange] = useState({ first: 0, last: 0 });
  const next = useRef<{
    first: number;
    last: number;
    at: number;
    timer?: ReturnType<typeof setTimeout>;
  }>({ ...range, at: 0 });
  useEffect(() => () => clearTimeout(next.current.timer), []);
  const onRange = useCallback((firstRow: number, lastRow: number) => {
    const first = Math.floor(firstRow / PAGE);
    const last = Math.floor(Math.max(firstRow, lastRow - 1) / PAGE);
    const former = next.current;
    if (former.first === first && former.last === last) return;
    clearTimeout(former.timer);
    const at = Date.now();
    const apply = () => setRange({ first, last });
    next.current = { first, last, at };
    if (at - former.at >= REST_MS) apply();
    else next.current.timer = setTimeout(apply, REST_MS);
  }, []);
  return { ...range, onRange };
}
