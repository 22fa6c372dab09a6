/** A button that does something on the server, once somebody has agreed to what it will do. */
import type { ReactNode } from "react";
import type { Answer } from "../api/client";
import { Button } from "./Button";
import { confirm, type Question } from "./Confirm";
import type { IconName } from "./Icon";
import { type Needs, useRights } from "./rights";

interface Props<T> {
  children: ReactNode;
  /** The call; it is given the reason that was entered. */
  run: (why: string) => Promise<Answer<T>>;
  /** What is asked first. */
  ask: Omit<Question<T>, "run" | "done">;
  /** What is said when it is done. */
  done: string | ((value: T) => string);
  icon?: IconName;
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** Which key may do it; to others it is not offered. */
  needs?: Needs;
}

export function Act<T>({ children, run, ask, done, icon, kind = "plain", needs = "admin" }: Props<T>) {
  const { allows } = useRights();
  if (!allows(needs)) return null;
  return (
    <Button kind={kind} onClick={() => void confirm({ ...ask, run, done })} {...(icon ? { icon } : {})}>
      {children}
    </Button>
  );
}
