/** The address is the state: every view and every filter is in the URL, and only there. */
import { useCallback, useMemo, useSyncExternalStore } from "react";
import { nextTops, takeTops, writeTops } from "./scrolled";

export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

export type Changes = Readonly<Record<string, string | number | boolean | null | undefined>>;

const listeners = new Set<() => void>();
let current = window.location.href;
let entry = 0;

function tell(): void {
  current = window.location.href;
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", ({ state }) => {
  takeTops(state);
  entry += 1;
  tell();
});

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Goes to an address of this page. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (new URL(to, window.location.href).href === window.location.href) return;
  const before = window.location.pathname;
  const isSamePage = new URL(to, window.location.href).pathname === before;
  if (!options.replace) writeTops();
  const state = nextTops(isSamePage);
  if (options.replace) window.history.replaceState(state, "", to);
  else window.history.pushState(state, "", to);
  if (!isSamePage) entry += 1;
  tell();
  if (!isSamePage) document.querySelector("main")?.scrollTo(0, 0);
}

/** Grows when another entry of the history, or another page, is shown. */
export function useEntry(): number {
  return useSyncExternalStore(listen, () => entry);
}

/** Where we are. */
export function usePlace(): Place {
  const href = useSyncExternalStore(listen, () => current);
  return useMemo(() => {
    const url = new URL(href);
    return { path: url.pathname, query: url.searchParams };
  }, [href]);
}

/** The query with some values set; null, undefined, false and "" take a value away. */
export function withQuery(query: URLSearchParams, changes: Changes): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === false || value === "") next.delete(name);
    else next.set(name, value === true ? "1" : String(value));
  }
  const text = next.toString();
  return text ? `?${text}` : "";
}

/** Reads the query, and changes it: a filter replaces the entry in the history, a view adds one. */
export function useQuery(): [URLSearchParams, (changes: Changes, options?: { push?: boolean }) => void] {
  const { query } = usePlace();
  const change = useCallback((changes: Changes, options: { push?: boolean } = {}) => {
    const now = new URL(window.location.href);
    navigate(now.pathname + withQuery(now.searchParams, changes), { replace: !options.push });
  }, []);
  return [query, change];
}

/** An address from parts: names are encoded whole, so a name may hold anything. */
export function address(parts: readonly string[], query: Changes = {}): string {
  return `/${parts.map(encodeURIComponent).join("/")}${withQuery(new URLSearchParams(), query)}`;
}

/** The variables of a path that fits a pattern such as `/datasets/:namespace/:name`, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? "";
    if (part.startsWith(":")) {
      try {
        found[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (part !== value) return null;
  }
  return found;
}
