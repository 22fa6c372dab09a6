/** What changed between two schemas. */
import type { Field } from "../runs/facets";

export type Change = "added" | "removed" | "changed" | "same";

export interface Compared {
  readonly name: string;
  readonly before: Field | null;
  readonly after: Field | null;
  readonly change: Change;
}

/** Every field of either schema: those of the newer in its order, those that are gone where they were. */
export function compare(before: readonly Field[], after: readonly Field[]): readonly Compared[] {
  const old = new Map(before.map((field) => [field.name, field]));
  const kept = new Set(after.map((field) => field.name));
  const found: Compared[] = after.map((field) => {
    const was = old.get(field.name) ?? null;
    return { name: field.name, before: was, after: field, change: !was ? "added" : was.type === field.type && was.description === field.description ? "same" : "changed" };
  });
  for (const [at, field] of before.entries()) {
    if (!kept.has(field.name)) found.splice(Math.min(at, found.length), 0, { name: field.name, before: field, after: null, change: "removed" });
  }
  return found;
}

/** The changes in short: `+discount −vat ~amount`. */
export function inShort(compared: readonly Compared[]): readonly { readonly change: Change; readonly text: string }[] {
  const signs: Readonly<Record<Change, string>> = { added: "+", removed: "−", changed: "~", same: "" };
  return compared.filter((each) => each.change !== "same").map((each) => ({ change: each.change, text: signs[each.change] + each.name }));
}
