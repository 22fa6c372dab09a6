/** Does something on the server, once at a time: says when it is done, and keeps why it was not. */
import { useEffect, useRef, useState } from "react";
import type { Answer, Problem } from "../api/client";
import { refresh } from "../api/store";
import { saidOf } from "./Refused";
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
  /** What the call answered, or null if it was in vain, or the window is closed by then. */
  readonly attempt: <T>(doing: Doing<T>) => Promise<T | null>;
}

export function useAttempt(): Attempt {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isGone = useGone();
  async function attempt<T>({ run, done }: Doing<T>): Promise<T | null> {
    setBusy(true);
    const answer = await run();
    setBusy(false);
    setProblem(answer.ok ? null : answer.problem);
    // What was refused may have been done by somebody else meanwhile.
    refresh();
    if (!answer.ok) {
      // A call that was made cannot be taken back; who has closed the window still hears of it.
      if (isGone.current) toast(saidOf(answer.problem), "bad");
      return null;
    }
    toast(typeof done === "string" ? done : done(answer.value));
    return isGone.current ? null : answer.value;
  }
  return { isBusy, problem, attempt };
}

/** Whether it is drawn no more, for what comes later. */
function useGone() {
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  return isGone;
}
