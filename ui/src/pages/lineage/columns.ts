/** Which field is made from which, and the edges between them. */
import type { Schemas } from "../../api/client";

type FieldNode = Schemas["ColumnGraph"]["graph"][number];

export interface FieldEdge {
  readonly from: { readonly dataset: string; readonly field: string };
  /** Without a field: every field of the dataset. */
  readonly to: { readonly dataset: string; readonly field: string | null };
  readonly how: string | null;
  readonly isIndirect: boolean;
}

/** Every edge between fields, by the nodes of their datasets. */
export function fieldEdges(graph: readonly FieldNode[]): readonly FieldEdge[] {
  return graph.flatMap((node) =>
    (node.data?.inputFields ?? []).map((input) => ({
      from: { dataset: `dataset:${input.namespace}:${input.dataset}`, field: input.field },
      to: { dataset: `dataset:${node.data.namespace}:${node.data.dataset}`, field: node.data.field },
      how: input.transformationDescription ?? input.transformationType ?? node.data.transformationType,
      isIndirect: input.indirect === true,
    })),
  );
}

/** Edges from the keys of joins, filters and sorts to the datasets that depend on them. */
export function indirectEdges(lineage: readonly Schemas["IndirectLineage"][]): readonly FieldEdge[] {
  return lineage.flatMap((of) =>
    of.inputFields.map((input) => ({
      from: { dataset: `dataset:${input.namespace}:${input.dataset}`, field: input.field },
      to: { dataset: `dataset:${of.namespace}:${of.dataset}`, field: null },
      how: input.transformationDescription ?? input.transformationType,
      isIndirect: true,
    })),
  );
}

/** The fields of each dataset that take part. */
export function fieldsByDataset(edges: readonly FieldEdge[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const edge of edges) {
    for (const { dataset, field } of [edge.from, edge.to]) {
      if (field === null) continue;
      const fields = found.get(dataset) ?? new Set();
      fields.add(field);
      found.set(dataset, fields);
    }
  }
  return new Map([...found].map(([dataset, fields]) => [dataset, [...fields].sort()]));
}
