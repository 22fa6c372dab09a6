/** The dialog before a change: it describes the effect, takes a reason, and stays until success. */
import { type FormEvent, type ReactNode, useId, useState } from "react";
import type { Answer } from "../api/client";
import { createStore, useValue } from "../lib/store";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { MutationError } from "./MutationError";
import { useApiMutation } from "./useApiMutation";

export interface Question<T> {
  readonly title: string;
  /** The effect, in a sentence or two. */
  readonly description: ReactNode;
  /** The label of the button that confirms. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Whether the dialog takes a reason, which goes into the audit log. */
  readonly reason?: "required" | "optional" | "none";
  /** A text that must be typed, for a change that cannot be undone. */
  readonly typed?: string;
  /** The call, with the reason. */
  readonly send: (why: string) => Promise<Answer<T>>;
  /** The text of the toast after success. */
  readonly done: string | ((value: T) => string);
}

interface Open {
  readonly number: number;
  readonly question: Question<unknown>;
  readonly settle: (value: unknown) => void;
}

const open = createStore<Open | null>(null);
let lastNumber = 0;

/** Ask for confirmation and make the call. Return its answer, or null if it was not made. */
export function confirm<T>(question: Question<T>): Promise<T | null> {
  open.get()?.settle(null);
  lastNumber += 1;
  return new Promise((resolve) => {
    open.set({
      number: lastNumber,
      question: question as Question<unknown>,
      settle: (value) => {
        open.set(null);
        resolve(value as T | null);
      },
    });
  });
}

/** The place of the dialog; the layout has one. */
export function Confirm() {
  const current = useValue(open);
  return (
    current && (
      <ConfirmDialog key={current.number} question={current.question} settle={current.settle} />
    )
  );
}

interface DialogProps {
  question: Question<unknown>;
  settle: (value: unknown) => void;
}

function ConfirmDialog({ question, settle }: DialogProps) {
  const { title, description, verb, danger, reason = "required", typed, send, done } = question;
  const [why, setWhy] = useState("");
  const [entered, setEntered] = useState("");
  const field = useId();
  const { mutate, isPending, error } = useApiMutation({ send: () => send(why.trim()), done });
  const hasReason = reason !== "required" || why.trim() !== "";
  const isReady = !isPending && hasReason && (!typed || entered === typed);
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (isReady) mutate(undefined, { onSuccess: settle });
  }
  return (
    <Dialog title={title} onClose={() => settle(null)}>
      <form onSubmit={submit} className="stack">
        <div className="says">{description}</div>
        {reason !== "none" && (
          <label htmlFor={field}>
            Reason {reason === "optional" && <span className="faint">(for the audit log)</span>}
            <input
              id={field}
              className="field"
              value={why}
              onChange={(event) => setWhy(event.target.value)}
              autoFocus
              maxLength={500}
              required={reason === "required"}
            />
          </label>
        )}
        {typed && (
          <label htmlFor={`${field}t`}>
            Type <code>{typed}</code> to confirm
            <input
              id={`${field}t`}
              className="field mono"
              value={entered}
              onChange={(event) => setEntered(event.target.value)}
              autoComplete="off"
            />
          </label>
        )}
        <MutationError problem={error} />
        <footer>
          <Button onClick={() => settle(null)}>{error ? "Close" : "Cancel"}</Button>
          <Button
            type="submit"
            kind={danger ? "danger" : "primary"}
            disabled={!isReady}
            aria-busy={isPending}
            autoFocus={reason === "none" && !typed}
          >
            {verb}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
