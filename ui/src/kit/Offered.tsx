import type { ReactNode } from "react";
import { type Needs, useRights } from "./rights";

interface Props {
  children: ReactNode;
  needs?: Needs;
  /** Whether it is said why it is not here, as where it would be all there is. */
  says?: boolean;
}

/** What only some keys may do; others do not see it. */
export function Offered({ children, needs = "admin", says = false }: Props) {
  const rights = useRights();
  if (rights.allows(needs)) return children;
  return says && rights.says ? <p className="body faint">{rights.says}</p> : null;
}
