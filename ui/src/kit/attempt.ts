/** Does something on the server, once at a time: says when it is done, and keeps why it was not. */
import { useState } from "react";
import type { Answer, Problem } from "../api/client";
import { refresh } from "../api/store";
import { toast } from "./Toasts";

export interface Doing<T> {
  /** The call. */
  readonly run: () => Promise<Answer<T>>;
  /** What is said when it is done. */
  readonly done: string | ((value: T) => string);
}

export interface Attempt {
  readonly isBusy: boolean;
  /** Why the last attempt was in vain. */
  readonly problem: Problem | null;
  /** What the call answered, or null if it was in vain; then it can be tried again. */
  readonly attempt: <T>(doing: Doing<T>) => Promise<T | null>;
}

export function useAttempt(): Attempt {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  async function attempt<T>({ run, done }: Doing<T>): Promise<T | null> {
    setBusy(true);
    const answer = await run();
    setBusy(false);
    setProblem(answer.ok ? null : answer.problem);
    // What was refused may have been done by somebody else meanwhile.
    refresh();
    if (!answer.ok) return null;
    toast(typeof done === "string" ? done : done(answer.value));
    return answer.value;
  }
  return { isBusy, problem, attempt };
}
