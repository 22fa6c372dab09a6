/** What was read from the server, by address: shown at once, and read again when there is news. */
import { type Answer, type Problem, send } from "./client";
import { onNews } from "./live";

export interface Loaded<T> {
  /** What was read last; it stays while it is read again, or cannot be. */
  readonly value: T | undefined;
  readonly problem: Problem | undefined;
  readonly at: number;
  readonly isReading: boolean;
}

const NOTHING: Loaded<never> = { value: undefined, problem: undefined, at: 0, isReading: false };
/** News may come often; the same thing is not read more often than this. */
const QUIET_MS = 1_000;
const KEPT_MAX = 300;

interface Entry {
  loaded: Loaded<unknown>;
  readonly listeners: Set<() => void>;
  isLive: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
  isStale: boolean;
}

const entries = new Map<string, Entry>();
/** Grows when all is forgotten: what was asked for before is of no use then. */
let age = 0;

function entryOf(url: string): Entry {
  let entry = entries.get(url);
  if (!entry) {
    entry = { loaded: NOTHING, listeners: new Set(), isLive: true, timer: undefined, isStale: false };
    entries.set(url, entry);
    forgetOld();
  }
  return entry;
}

function forgetOld(): void {
  for (const [url, entry] of entries) {
    if (entries.size <= KEPT_MAX) return;
    if (entry.listeners.size === 0) entries.delete(url);
  }
}

export function peek<T>(url: string | null): Loaded<T> {
  return url === null ? NOTHING : ((entries.get(url)?.loaded ?? NOTHING) as Loaded<T>);
}

/** Watches an address: it is read now unless it was just read, and again when there is news. */
export function watch(url: string, listener: () => void, isLive: boolean): () => void {
  const entry = entryOf(url);
  entry.listeners.add(listener);
  entry.isLive = isLive;
  if (!entry.loaded.isReading && Date.now() - entry.loaded.at > QUIET_MS) void read(url);
  return () => {
    entry.listeners.delete(listener);
    if (entry.listeners.size === 0) clearTimeout(entry.timer);
  };
}

/** Reads an address that will be wanted soon. */
export function ahead(url: string): void {
  if (entryOf(url).loaded.at === 0) void read(url);
}

/** Reads an address again, at once. */
export async function read(url: string): Promise<void> {
  const entry = entryOf(url);
  if (entry.loaded.isReading) {
    entry.isStale = true;
    return;
  }
  clearTimeout(entry.timer);
  entry.timer = undefined;
  set(entry, { ...entry.loaded, isReading: true });
  const asked = age;
  const answer: Answer<unknown> = await send("get", url);
  if (asked !== age) return;
  const at = Date.now();
  set(
    entry,
    answer.ok
      ? { value: answer.value, problem: undefined, at, isReading: false }
      : { value: entry.loaded.value, problem: answer.problem, at, isReading: false },
  );
  if (entry.isStale) {
    entry.isStale = false;
    soon(url, entry);
  }
}

function set(entry: Entry, loaded: Loaded<unknown>): void {
  entry.loaded = loaded;
  for (const listener of entry.listeners) listener();
}

function soon(url: string, entry: Entry): void {
  if (entry.timer !== undefined || entry.listeners.size === 0) return;
  const wait = Math.max(0, QUIET_MS - (Date.now() - entry.loaded.at));
  entry.timer = setTimeout(() => {
    entry.timer = undefined;
    void read(url);
  }, wait);
}

/** Reads everything that is shown again, as after something was done here. */
export function refresh(): void {
  for (const [url, entry] of entries) {
    if (entry.listeners.size > 0) void read(url);
    else entry.loaded = { ...entry.loaded, at: 0 };
  }
}

/** Forgets everything, as what another key may see, and reads what is shown. */
export function renew(): void {
  age += 1;
  for (const [url, entry] of entries) {
    entry.isStale = false;
    set(entry, NOTHING);
    if (entry.listeners.size > 0) void read(url);
  }
}

onNews(() => {
  for (const [url, entry] of entries) {
    if (entry.listeners.size > 0 && entry.isLive) soon(url, entry);
  }
});
