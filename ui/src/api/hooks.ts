/** Reading the API from a component. */
import { useCallback, useRef, useSyncExternalStore } from "react";
import { type AnswerOf, type Ask, type PathOf, urlOf } from "./client";
import { type Loaded, peek, watch } from "./store";

interface Options {
  /** Whether it is read again when there is news; what never changes need not be. */
  live?: boolean;
  /** Whether what was shown stays while another address is read, as when a filter changes. */
  keep?: boolean;
}

const noWatch = () => () => undefined;

/** Reads a path, and follows it. With `null` instead of what to ask, nothing is read. */
export function useGet<P extends PathOf<"get">>(
  path: P,
  ask: Ask<"get", P> | null,
  { live = true, keep = false }: Options = {},
): Loaded<AnswerOf<"get", P>> {
  const url = ask === null ? null : urlOf(path, ask as object);
  const subscribe = useCallback(
    (listener: () => void) => (url === null ? noWatch() : watch(url, listener, live)),
    [url, live],
  );
  const loaded = useSyncExternalStore(subscribe, () => peek<AnswerOf<"get", P>>(url));
  const last = useRef<AnswerOf<"get", P> | undefined>(undefined);
  if (loaded.value !== undefined) last.current = loaded.value;
  else if (keep && last.current !== undefined && !loaded.problem) return { ...loaded, value: last.current };
  return loaded;
}
