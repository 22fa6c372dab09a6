/** What the key in use may do, so that nothing else is offered. The server decides all the same. */
import { createContext, useContext } from "react";
import type { Schemas } from "../api/client";

export type Caller = Schemas["ShownCaller"];

/** The key that an action needs: of a writer or an administrator, and maybe for every namespace. */
export type Needs = "writer" | "writer everywhere" | "admin" | "admin everywhere" | "everywhere";

export interface Rights {
  /** Whether it was found out; before that nothing that acts is offered. */
  readonly isKnown: boolean;
  readonly allows: (needs: Needs) => boolean;
  /** Why not everything is offered, or null if it is. */
  readonly says: string | null;
}

/** Everything is offered if it cannot be known who asks. */
export function rightsOf(caller: Caller | undefined, isRefused: boolean): Rights {
  if (!caller) return { isKnown: isRefused, allows: () => isRefused, says: null };
  const isAdmin = caller.role === "admin";
  const isWriter = isAdmin || caller.role === "writer";
  const isEverywhere = caller.namespace === null;
  const whose = `Key “${caller.name ?? ""}” is ${caller.role === "admin" ? "an admin" : `a ${caller.role}`}’s`;
  const where = isEverywhere ? "" : `, for namespace “${caller.namespace}” only`;
  const lacks = isAdmin ? "what concerns other namespaces" : `whatever changes something${isWriter ? " that exists" : ""}`;
  return {
    isKnown: true,
    allows: (needs) => (needs.startsWith("admin") ? isAdmin : needs.startsWith("writer") ? isWriter : true) && (isEverywhere || !needs.endsWith("everywhere")),
    says: isAdmin && isEverywhere ? null : `${whose}${where}: ${lacks} is not offered here, and needs another key.`,
  };
}

const Held = createContext<Rights>(rightsOf(undefined, false));

export const RightsProvider = Held.Provider;

export const useRights = (): Rights => useContext(Held);
