/** News from the server: one stream for the whole page, and a slow look when there is none. */
import { useSyncExternalStore } from "react";
import { headers } from "./client";

export type Liveness = "live" | "connecting" | "polling";

const STREAM = "/api/v1/pulse";
const POLL_MS = 5_000;
/** What the stream does not tell of, such as a queue that ZooKeeper keeps, is looked at so often. */
const SWEEP_MS = 15_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;
const FAILURES_UNTIL_POLLING = 2;

const news = new Set<() => void>();
const watchers = new Set<() => void>();
let liveness: Liveness = "connecting";
let stop: AbortController | null = null;
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

function become(next: Liveness): void {
  if (next === liveness) return;
  liveness = next;
  for (const watcher of watchers) watcher();
}

function tell(): void {
  for (const listener of news) listener();
}

/** Is told that something has changed on the server; returns the way to stop. */
export function onNews(listener: () => void): () => void {
  news.add(listener);
  return () => news.delete(listener);
}

/** Whether what is shown follows the server. */
export function useLiveness(): Liveness {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => liveness,
  );
}

/** Begins to follow. A hidden tab lets its connection go: a browser has only six for one server. */
export function follow(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hush();
    else again();
  });
  setInterval(() => {
    if (!document.hidden && liveness === "live") tell();
  }, SWEEP_MS);
  setInterval(() => {
    if (!document.hidden && liveness === "polling") tell();
  }, POLL_MS);
  if (!document.hidden) void read();
}

/** Connects anew at once, as after a key was entered. */
export function again(): void {
  hush();
  failures = 0;
  tell();
  void read();
}

function hush(): void {
  clearTimeout(timer);
  stop?.abort();
  stop = null;
}

async function read(): Promise<void> {
  const mine = new AbortController();
  stop = mine;
  try {
    const response = await fetch(STREAM, { headers: headers(), signal: mine.signal });
    if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
    become("live");
    // What happened while there was no stream was told to nobody.
    if (failures > 0) tell();
    failures = 0;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      rest = take(rest + value);
    }
  } catch {
    if (mine.signal.aborted) return;
  }
  if (mine.signal.aborted) return;
  failures += 1;
  become(failures > FAILURES_UNTIL_POLLING ? "polling" : "connecting");
  const wait = Math.min(RETRY_MS_MIN * 2 ** failures, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
  timer = setTimeout(() => void read(), wait);
}

/** Tells of each whole event in the text, and gives back what is left of it. */
function take(text: string): string {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  if (blocks.some((block) => block.includes("event: changed"))) tell();
  return rest;
}
