/** A button that does something on the server: asks first if it must, then says how it went. */
import { type ReactNode, useState } from "react";
import type { Answer } from "../api/client";
import { refresh } from "../api/store";
import { Button } from "./Button";
import { confirm, type Question } from "./Confirm";
import type { IconName } from "./Icon";
import { type Needs, useRights } from "./rights";
import { toast } from "./Toasts";

interface Props<T> {
  children: ReactNode;
  /** The call; it is given the reason that was entered. */
  run: (why: string) => Promise<Answer<T>>;
  /** What is asked first; left out, it is done at once. */
  ask?: Question;
  /** What is said when it is done. */
  done: string | ((value: T) => string);
  icon?: IconName;
  kind?: "plain" | "primary" | "danger" | "quiet";
  disabled?: boolean;
  title?: string;
  /** Which key may do it; to others it is not offered. */
  needs?: Needs;
}

export function Act<T>({ children, run, ask, done, icon, kind = "plain", disabled = false, title, needs = "admin" }: Props<T>) {
  const [isBusy, setBusy] = useState(false);
  const { allows } = useRights();
  async function act(): Promise<void> {
    const agreed = ask ? await confirm(ask) : { why: "" };
    if (!agreed) return;
    setBusy(true);
    await perform(() => run(agreed.why), done);
    setBusy(false);
  }
  if (!allows(needs)) return null;
  return (
    <Button kind={kind} onClick={() => void act()} disabled={disabled || isBusy} aria-busy={isBusy} {...(icon ? { icon } : {})} {...(title ? { title } : {})}>
      {children}
    </Button>
  );
}

/** Makes a call, says how it went, and has everything shown read again. */
export async function perform<T>(run: () => Promise<Answer<T>>, done: string | ((value: T) => string)): Promise<T | null> {
  const answer = await run();
  if (!answer.ok) {
    toast(answer.problem.message, "bad");
    return null;
  }
  toast(typeof done === "string" ? done : done(answer.value));
  refresh();
  return answer.value;
}
