/** Changes on the server: one event stream for the whole page, and polling while there is none. */
import { createStore } from "../lib/store";
import { headers } from "./client";

export type Liveness = "live" | "connecting" | "polling";

const STREAM = "/api/v1/pulse";
const POLL_MS = 5_000;
/** The stream does not report every change: a queue in ZooKeeper, for one. */
const SWEEP_MS = 15_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;
const FAILURES_UNTIL_POLLING = 2;

/** Whether the page follows the server. */
export const liveness = createStore<Liveness>("connecting");

const listeners = new Set<() => void>();
let stream: AbortController | null = null;
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Call the listener after a change on the server; the returned function ends that. */
export function onChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}

/** Follow the server. A hidden tab disconnects: a browser opens only six connections to a host. */
export function connect(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else reconnect();
  });
  setInterval(() => {
    if (!document.hidden && liveness.get() === "live") notify();
  }, SWEEP_MS);
  setInterval(() => {
    if (!document.hidden && liveness.get() === "polling") notify();
  }, POLL_MS);
  if (!document.hidden) void readStream();
}

/** Connect again at once, as after a key was entered. */
export function reconnect(): void {
  disconnect();
  failures = 0;
  notify();
  void readStream();
}

function disconnect(): void {
  clearTimeout(timer);
  stream?.abort();
  stream = null;
}

async function readStream(): Promise<void> {
  const own = new AbortController();
  stream = own;
  try {
    const response = await fetch(STREAM, { headers: headers(), signal: own.signal });
    if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
    liveness.set("live");
    // No event reported the changes of the time without a stream.
    if (failures > 0) notify();
    failures = 0;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest = takeEvents(rest + value);
    }
  } catch {
    if (own.signal.aborted) return;
  }
  if (own.signal.aborted) return;
  failures += 1;
  liveness.set(failures > FAILURES_UNTIL_POLLING ? "polling" : "connecting");
  const wait = Math.min(RETRY_MS_MIN * 2 ** failures, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
  timer = setTimeout(() => void readStream(), wait);
}

/** Report the whole events of a text, and return the incomplete rest. */
function takeEvents(text: string): string {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  if (blocks.some((block) => block.includes("event: changed"))) notify();
  return rest;
}
