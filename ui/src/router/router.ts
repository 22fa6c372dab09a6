/** The address is the state: every view and every filter is in the URL and nowhere else. */
import { useCallback, useMemo, useSyncExternalStore } from "react";
import { nextScroll, loadScroll, writeScroll } from "./scrollState";

export interface Location {
  readonly path: string;
  readonly query: URLSearchParams;
}

export type Changes = Readonly<Record<string, string | number | boolean | null | undefined>>;

const listeners = new Set<() => void>();
let current = window.location.href;
let entry = 0;

function notify(): void {
  current = window.location.href;
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", ({ state }) => {
  loadScroll(state);
  entry += 1;
  notify();
});

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Open an address of this page. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (new URL(to, window.location.href).href === window.location.href) return;
  const before = window.location.pathname;
  const isSamePage = new URL(to, window.location.href).pathname === before;
  if (!options.replace) writeScroll();
  const state = nextScroll(isSamePage);
  if (options.replace) window.history.replaceState(state, "", to);
  else window.history.pushState(state, "", to);
  if (!isSamePage) entry += 1;
  notify();
  if (!isSamePage) document.querySelector("main")?.scrollTo(0, 0);
}

/** A number that grows with each other history entry or page. */
export function useHistoryEntry(): number {
  return useSyncExternalStore(subscribe, () => entry);
}

/** The current address. */
export function useLocation(): Location {
  const href = useSyncExternalStore(subscribe, () => current);
  return useMemo(() => {
    const url = new URL(href);
    return { path: url.pathname, query: url.searchParams };
  }, [href]);
}

/** Format a query with changes; null, undefined, false and "" remove a value. */
export function withQuery(query: URLSearchParams, changes: Changes): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === false || value === "") next.delete(name);
    else next.set(name, value === true ? "1" : String(value));
  }
  const text = next.toString();
  return text ? `?${text}` : "";
}

/** The query and its setter: a filter replaces the history entry, a view adds one. */
export function useSearchParams(): [
  URLSearchParams,
  (changes: Changes, options?: { push?: boolean }) => void,
] {
  const { query } = useLocation();
  const change = useCallback((changes: Changes, options: { push?: boolean } = {}) => {
    const now = new URL(window.location.href);
    navigate(now.pathname + withQuery(now.searchParams, changes), { replace: !options.push });
  }, []);
  return [query, change];
}

/** Format an address; each part is encoded as one segment, so a name may hold any character. */
export function address(parts: readonly string[], query: Changes = {}): string {
  return `/${parts.map(encodeURIComponent).join("/")}${withQuery(new URLSearchParams(), query)}`;
}

/** Match a path with a pattern such as `/datasets/:namespace/:name`: its variables, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const expected = pattern.split("/");
  const actual = path.replace(/(.)\/$/, "$1").split("/");
  if (expected.length !== actual.length) return null;
  const variables: Record<string, string> = {};
  for (const [at, part] of expected.entries()) {
    const value = actual[at] ?? "";
    if (part.startsWith(":")) {
      try {
        variables[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (part !== value) return null;
  }
  return variables;
}
