/** Asks before something is done: says what will happen, and takes a reason where the API does. */
import { type FormEvent, type ReactNode, useId, useState, useSyncExternalStore } from "react";
import { Button } from "./Button";
import { Dialog } from "./Dialog";

export interface Question {
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
}

export interface Agreed {
  readonly why: string;
}

interface Open extends Question {
  readonly settle: (answer: Agreed | null) => void;
}

let open: Open | null = null;
const watchers = new Set<() => void>();

function show(next: Open | null): void {
  open = next;
  for (const watcher of watchers) watcher();
}

/** Asks, and gives the reason, or null if the answer is no. */
export function confirm(question: Question): Promise<Agreed | null> {
  open?.settle(null);
  return new Promise((resolve) => {
    show({
      ...question,
      settle: (answer) => {
        show(null);
        resolve(answer);
      },
    });
  });
}

/** The place where questions are asked; there is one, in the layout. */
export function Confirm() {
  const asked = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => open,
  );
  return asked && <Asking key={asked.title + asked.verb} question={asked} />;
}

function Asking({ question }: { question: Open }) {
  const [why, setWhy] = useState("");
  const [typed, setTyped] = useState("");
  const field = useId();
  const isReady = (question.reason !== "needed" || why.trim()) && (!question.typed || typed === question.typed);
  function agree(event: FormEvent): void {
    event.preventDefault();
    if (isReady) question.settle({ why: why.trim() });
  }
  return (
    <Dialog title={question.title} onClose={() => question.settle(null)}>
      <form onSubmit={agree} className="stack">
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
        <footer>
          <Button onClick={() => question.settle(null)}>Cancel</Button>
          <Button type="submit" kind={question.danger ? "danger" : "primary"} disabled={!isReady} autoFocus={!question.reason && !question.typed}>
            {question.verb}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
