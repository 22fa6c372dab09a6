/** Reads of the API: cached by address, and read again when the server reports a change. */
import {
  keepPreviousData,
  notifyManager,
  QueryCache,
  QueryClient,
  queryOptions,
  useQuery,
  type UseQueryResult,
} from "@tanstack/react-query";
import { type AnswerOf, type Ask, type PathOf, type Problem, send, urlOf } from "./client";
import { onChange } from "./live";

declare module "@tanstack/react-query" {
  interface Register {
    defaultError: Problem;
    queryMeta: { readonly isLive: boolean };
  }
}

export type Query<T> = UseQueryResult<T, Problem>;

/** Changes may come often; the same address is not read more often than this. */
const QUIET_MS = 1_000;

/** The queries that were being read when a change came: their answer may be older than the change. */
const outdated = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;
let refetchedAt = 0;

// An answer is shown at once instead of after a timer.
notifyManager.setScheduler(queueMicrotask);

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onSettled: (_data, _problem, { queryHash, queryKey }) => {
      if (!outdated.delete(queryHash)) return;
      const sameQuery = { queryKey, exact: true, type: "active" } as const;
      setTimeout(() => void queryClient.refetchQueries(sameQuery), QUIET_MS);
    },
  }),
  defaultOptions: {
    // live.ts decides when to read again; the next change also repeats a read that failed.
    queries: {
      staleTime: QUIET_MS,
      retry: false,
      networkMode: "always",
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
    },
    mutations: { networkMode: "always" },
  },
});

/** Describe the query that reads one address. A change on the server refetches a live query. */
export function queryOf<T>(url: string, isLive = true) {
  return queryOptions<T, Problem>({
    queryKey: [url],
    queryFn: async () => {
      const answer = await send<T>("get", url);
      if (!answer.ok) throw answer.problem;
      return answer.value;
    },
    meta: { isLive },
  });
}

interface Options {
  /** Whether a change on the server refetches it. */
  live?: boolean;
  /** Whether the previous data stays while another address is read, as when a filter changes. */
  keep?: boolean;
}

/** Read a path, and follow its changes. Nothing is read while `ask` is null. */
export function useGet<P extends PathOf<"get">>(
  path: P,
  ask: Ask<"get", P> | null,
  { live = true, keep = false }: Options = {},
): Query<AnswerOf<"get", P>> {
  const url = ask === null ? "" : urlOf(path, ask as object);
  return useQuery({
    ...queryOf<AnswerOf<"get", P>>(url, live),
    enabled: ask !== null,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
  });
}

/** Read an address that will be needed soon. */
export function prefetch(url: string): void {
  void queryClient.prefetchQuery(queryOf(url));
}

/** Refetch everything that is shown, as after a change that was made here. */
export function refetchAll(): void {
  void queryClient.invalidateQueries();
}

/** Drop everything that was read with another key, and read what is shown. */
export function resetAll(): void {
  outdated.clear();
  void queryClient.resetQueries();
}

function refetchLive(): void {
  timer = undefined;
  refetchedAt = Date.now();
  const live = queryClient
    .getQueryCache()
    .findAll({ type: "active", predicate: (query) => query.meta?.isLive === true });
  for (const query of live) {
    if (query.state.fetchStatus === "fetching") outdated.add(query.queryHash);
    else void queryClient.refetchQueries({ queryKey: query.queryKey, exact: true });
  }
}

onChange(() => {
  timer ??= setTimeout(refetchLive, Math.max(0, QUIET_MS - (Date.now() - refetchedAt)));
});
