/** Asks before something is done: says what will happen, takes a reason, and stays until it is done. */
import { type FormEvent, type ReactNode, useId, useState, useSyncExternalStore } from "react";
import type { Answer } from "../api/client";
import { useAttempt } from "./attempt";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Refused } from "./Refused";

export interface Question<T> {
  readonly title: string;
  /** What will happen, in a sentence or two. */
  readonly says: ReactNode;
  /** The word on the button that does it. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Whether a reason is asked for; it goes into the audit log. */
  readonly reason?: "needed" | "welcome";
  /** A text that must be typed, for what cannot be undone. */
  readonly typed?: string;
  /** The call; it is given the reason that was entered. */
  readonly run: (why: string) => Promise<Answer<T>>;
  /** What is said when it is done. */
  readonly done: string | ((value: T) => string);
}

interface Open {
  readonly number: number;
  readonly question: Question<unknown>;
  readonly settle: (value: unknown) => void;
}

let open: Open | null = null;
let asked = 0;
const watchers = new Set<() => void>();

function show(next: Open | null): void {
  open = next;
  for (const watcher of watchers) watcher();
}

/** Asks, and gives what the call answered, or null if it was not made. */
export function confirm<T>(question: Question<T>): Promise<T | null> {
  open?.settle(null);
  asked += 1;
  return new Promise((resolve) => {
    show({
      number: asked,
      question: question as Question<unknown>,
      settle: (value) => {
        show(null);
        resolve(value as T | null);
      },
    });
  });
}

/** The place where questions are asked; there is one, in the layout. */
export function Confirm() {
  const shown = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => open,
  );
  return shown && <Asking key={shown.number} question={shown.question} settle={shown.settle} />;
}

function Asking({ question, settle }: { question: Question<unknown>; settle: (value: unknown) => void }) {
  const [why, setWhy] = useState("");
  const [typed, setTyped] = useState("");
  const field = useId();
  const { isBusy, problem, attempt } = useAttempt();
  const isReady = !isBusy && (question.reason !== "needed" || why.trim()) && (!question.typed || typed === question.typed);
  async function agree(): Promise<void> {
    const value = await attempt({ run: () => question.run(why.trim()), done: question.done });
    if (value !== null) settle(value);
  }
  function send(event: FormEvent): void {
    event.preventDefault();
    if (isReady) void agree();
  }
  return (
    <Dialog title={question.title} onClose={() => settle(null)}>
      <form onSubmit={send} className="stack">
        <div className="says">{question.says}</div>
        {question.reason && (
          <label htmlFor={field}>
            Reason {question.reason === "welcome" && <span className="faint">(for the audit log)</span>}
            <input id={field} className="field" value={why} onChange={(event) => setWhy(event.target.value)} autoFocus maxLength={500} required={question.reason === "needed"} />
          </label>
        )}
        {question.typed && (
          <label htmlFor={`${field}t`}>
            Type <code>{question.typed}</code> to go on
            <input id={`${field}t`} className="field mono" value={typed} onChange={(event) => setTyped(event.target.value)} autoComplete="off" />
          </label>
        )}
        <Refused problem={problem} />
        <footer>
          <Button onClick={() => settle(null)}>{problem ? "Close" : "Cancel"}</Button>
          <Button type="submit" kind={question.danger ? "danger" : "primary"} disabled={!isReady} aria-busy={isBusy} autoFocus={!question.reason && !question.typed}>
            {question.verb}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
