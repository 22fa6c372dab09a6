import { expect, it } from "vitest";
import { type Caller, type Needs, rightsOf } from "./rights";

const NEEDS: readonly Needs[] = [
  "writer",
  "admin",
  "everywhere",
  "writer everywhere",
  "admin everywhere",
];
const allowed = (caller: Caller) => NEEDS.filter(rightsOf(caller, false).allows);

it("follow the role and the namespace of the key", () => {
  expect(allowed({ name: null, role: "admin", namespace: null })).toEqual(NEEDS);
  expect(allowed({ name: "ann", role: "admin", namespace: "shop" })).toEqual(["writer", "admin"]);
  expect(allowed({ name: "ann", role: "writer", namespace: null })).toEqual([
    "writer",
    "everywhere",
    "writer everywhere",
  ]);
  expect(allowed({ name: "ann", role: "writer", namespace: "shop" })).toEqual(["writer"]);
  expect(allowed({ name: "ann", role: "reader", namespace: null })).toEqual(["everywhere"]);
  expect(allowed({ name: "ann", role: "reader", namespace: "shop" })).toEqual([]);
});

it("have a note when some actions are hidden", () => {
  expect(rightsOf({ name: null, role: "admin", namespace: null }, false).note).toBeNull();
  expect(rightsOf({ name: "ann", role: "reader", namespace: null }, false).note).toContain(
    "Key “ann” is a reader’s: actions that change data",
  );
  expect(rightsOf({ name: "ann", role: "admin", namespace: "shop" }, false).note).toContain(
    "for namespace “shop” only: actions on other",
  );
});

it("are none before they are known, and all if they cannot be read", () => {
  expect(NEEDS.filter(rightsOf(undefined, false).allows)).toEqual([]);
  expect(NEEDS.filter(rightsOf(undefined, true).allows)).toEqual(NEEDS);
});
