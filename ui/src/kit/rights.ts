/** The rights of the current key, for hiding actions. The server enforces them. */
import { createContext, useContext } from "react";
import type { Schemas } from "../api/client";

export type Caller = Schemas["ShownCaller"];

/** The rights that an action takes: a role, and whether the key must be for every namespace. */
export type Needs = "writer" | "writer everywhere" | "admin" | "admin everywhere" | "everywhere";

export interface Rights {
  /** Whether they are known; until then no action is shown. */
  readonly isKnown: boolean;
  readonly allows: (needs: Needs) => boolean;
  /** Why some actions are hidden, or null. */
  readonly note: string | null;
}

/** All actions are shown if the rights cannot be read. */
export function rightsOf(caller: Caller | undefined, isRefused: boolean): Rights {
  if (!caller) return { isKnown: isRefused, allows: () => isRefused, note: null };
  const isAdmin = caller.role === "admin";
  const isWriter = isAdmin || caller.role === "writer";
  const isEverywhere = caller.namespace === null;
  const owner = `Key “${caller.name ?? ""}” is ${caller.role === "admin" ? "an admin" : `a ${caller.role}`}’s`;
  const where = isEverywhere ? "" : `, for namespace “${caller.namespace}” only`;
  const hidden = isAdmin
    ? "actions on other namespaces"
    : `actions that change ${isWriter ? "existing data" : "data"}`;
  return {
    isKnown: true,
    allows: (needs) =>
      (needs.startsWith("admin") ? isAdmin : needs.startsWith("writer") ? isWriter : true) &&
      (isEverywhere || !needs.endsWith("everywhere")),
    note:
      isAdmin && isEverywhere
        ? null
        : `${owner}${where}: ${hidden} are hidden and need another key.`,
  };
}

const RightsContext = createContext<Rights>(rightsOf(undefined, false));

export const RightsProvider = RightsContext.Provider;

export const useRights = (): Rights => useContext(RightsContext);
