/** The OpenLineage facets that the page shows; any part may be missing. */

export type Facets = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export function facetsOf(value: unknown): Facets {
  return value && typeof value === "object" ? (value as Facets) : {};
}

function text(value: unknown): string | null {
  return typeof value === "string" && value ? value : null;
}

/** Read the stack trace of a failed run. */
export function traceOf(facets: unknown): string | null {
  const all = facetsOf(facets);
  return text(all["errorMessage"]?.["stackTrace"]) ?? text(all["spark.exception"]?.["stackTrace"]);
}

/** Read the SQL of a job. */
export function sqlOf(facets: unknown): string | null {
  return text(facetsOf(facets)["sql"]?.["query"]);
}

/** Read the lot of a run. */
export function lotOf(facets: unknown): string | null {
  return text(facetsOf(facets)["penstock_lot"]?.["lot"]);
}

export interface Field {
  readonly name: string;
  readonly type: string | null;
  readonly description: string | null;
  readonly tags: readonly string[];
}

/** Read the fields of a dataset or of a version of it. */
export function fieldsOf(value: unknown): readonly Field[] {
  if (!Array.isArray(value)) return [];
  return value.map((each: Record<string, unknown>) => ({
    name: String(each["name"] ?? ""),
    type: text(each["type"]),
    description: text(each["description"]),
    tags: tagsOf(each["tags"]),
  }));
}

export function tagsOf(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.filter((each): each is string => typeof each === "string")
    : [];
}
