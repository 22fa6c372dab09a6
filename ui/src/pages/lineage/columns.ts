/** The edges between fields. */
import type { Schemas } from "../../api/client";

type FieldNode = Schemas["ColumnGraph"]["graph"][number];

export interface FieldEdge {
  readonly from: { readonly dataset: string; readonly field: string };
  /** The field, or null for every field of the dataset. */
  readonly to: { readonly dataset: string; readonly field: string | null };
  readonly how: string | null;
  readonly isIndirect: boolean;
}

/** List the edges between fields. */
export function fieldEdges(graph: readonly FieldNode[]): readonly FieldEdge[] {
  return graph.flatMap((node) =>
    (node.data?.inputFields ?? []).map((input) => ({
      from: { dataset: `dataset:${input.namespace}:${input.dataset}`, field: input.field },
      to: {
        dataset: `dataset:${node.data.namespace}:${node.data.dataset}`,
        field: node.data.field,
      },
      how:
        input.transformationDescription ?? input.transformationType ?? node.data.transformationType,
      isIndirect: input.indirect === true,
    })),
  );
}

/** List the edges from the keys of joins, filters and sorts to the datasets that use them. */
export function indirectEdges(
  lineage: readonly Schemas["IndirectLineage"][],
): readonly FieldEdge[] {
  return lineage.flatMap((of) =>
    of.inputFields.map((input) => ({
      from: { dataset: `dataset:${input.namespace}:${input.dataset}`, field: input.field },
      to: { dataset: `dataset:${of.namespace}:${of.dataset}`, field: null },
      how: input.transformationDescription ?? input.transformationType,
      isIndirect: true,
    })),
  );
}

/** List the fields of each dataset that have an edge. */
export function fieldsByDataset(
  edges: readonly FieldEdge[],
): ReadonlyMap<string, readonly string[]> {
  const byDataset = new Map<string, Set<string>>();
  for (const edge of edges) {
    for (const { dataset, field } of [edge.from, edge.to]) {
      if (field === null) continue;
      const fields = byDataset.get(dataset) ?? new Set();
      fields.add(field);
      byDataset.set(dataset, fields);
    }
  }
  return new Map([...byDataset].map(([dataset, fields]) => [dataset, [...fields].sort()]));
}
