/** What OpenLineage's facets say, as far as the page knows them; anything may be missing. */

export type Facets = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export function facetsOf(value: unknown): Facets {
  return value && typeof value === "object" ? (value as Facets) : {};
}

function text(value: unknown): string | null {
  return typeof value === "string" && value ? value : null;
}

/** The stack trace of a run that failed, if it sent one. */
export function traceOf(facets: unknown): string | null {
  const all = facetsOf(facets);
  return text(all["errorMessage"]?.["stackTrace"]) ?? text(all["spark.exception"]?.["stackTrace"]);
}

/** The SQL of a job, if it was told. */
export function sqlOf(facets: unknown): string | null {
  return text(facetsOf(facets)["sql"]?.["query"]);
}

/** The lot that a run worked on, if it was one. */
export function lotOf(facets: unknown): string | null {
  return text(facetsOf(facets)["penstock_lot"]?.["lot"]);
}

export interface Field {
  readonly name: string;
  readonly type: string | null;
  readonly description: string | null;
  readonly tags: readonly string[];
}

/** The fields of a dataset or of a version of it. */
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
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
