/** A button for a change on the server: it asks for confirmation, then makes the call. */
import type { ReactNode } from "react";
import { Button } from "./Button";
import { confirm, type Question } from "./Confirm";
import type { IconName } from "./Icon";
import { type Needs, useRights } from "./rights";

interface Props<T> extends Question<T> {
  children: ReactNode;
  icon?: IconName;
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** The rights that it takes; a key without them does not see the button. */
  needs?: Needs;
}

export function ActionButton<T>({
  children,
  icon,
  kind = "plain",
  needs = "admin",
  ...question
}: Props<T>) {
  const { allows } = useRights();
  if (!allows(needs)) return null;
  return (
    <Button kind={kind} onClick={() => void confirm(question)} {...(icon ? { icon } : {})}>
      {children}
    </Button>
  );
}
