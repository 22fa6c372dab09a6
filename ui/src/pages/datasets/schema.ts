/** The changes between two schemas. */
import type { Field } from "../runs/facets";

export type Change = "added" | "removed" | "changed" | "same";

export interface FieldChange {
  readonly name: string;
  readonly before: Field | null;
  readonly after: Field | null;
  readonly change: Change;
}

/** List the fields of both schemas in the newer order, removed ones at their former position. */
export function compare(before: readonly Field[], after: readonly Field[]): readonly FieldChange[] {
  const old = new Map(before.map((field) => [field.name, field]));
  const remaining = new Set(after.map((field) => field.name));
  const changes: FieldChange[] = after.map((field) => {
    const was = old.get(field.name) ?? null;
    return {
      name: field.name,
      before: was,
      after: field,
      change: !was
        ? "added"
        : was.type === field.type && was.description === field.description
          ? "same"
          : "changed",
    };
  });
  for (const [at, field] of before.entries()) {
    if (!remaining.has(field.name))
      changes.splice(Math.min(at, changes.length), 0, {
        name: field.name,
        before: field,
        after: null,
        change: "removed",
      });
  }
  return changes;
}

/** Label the changes: `+discount −vat ~amount`. */
export function changeLabels(
  compared: readonly FieldChange[],
): readonly { readonly change: Change; readonly text: string }[] {
  const signs: Readonly<Record<Change, string>> = {
    added: "+",
    removed: "−",
    changed: "~",
    same: "",
  };
  return compared
    .filter((each) => each.change !== "same")
    .map((each) => ({ change: each.change, text: signs[each.change] + each.name }));
}
