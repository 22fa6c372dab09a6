import type { ReactNode } from "react";
import { type Needs, useRights } from "./rights";

interface Props {
  children: ReactNode;
  needs?: Needs;
  /** Whether a note takes its place for other keys. */
  hasNote?: boolean;
}

/** A part of the page for the keys with some rights. */
export function IfAllowed({ children, needs = "admin", hasNote = false }: Props) {
  const rights = useRights();
  if (rights.allows(needs)) return children;
  return hasNote && rights.note ? <p className="body faint">{rights.note}</p> : null;
}
