/** Which field is made from which, and the edges between them. */
import type { Schemas } from "../../api/client";

type FieldNode = Schemas["ColumnGraph"]["graph"][number];

export interface FieldEdge {
  readonly from: { readonly dataset: string; readonly field: string };
  readonly to: { readonly dataset: string; readonly field: string };
  readonly how: string | null;
}

/** Every edge between fields, by the nodes of their datasets. */
export function fieldEdges(graph: readonly FieldNode[]): readonly FieldEdge[] {
  return graph.flatMap((node) =>
    (node.data?.inputFields ?? []).map((input) => ({
      from: { dataset: `dataset:${input.namespace}:${input.dataset}`, field: input.field },
      to: { dataset: `dataset:${node.data.namespace}:${node.data.dataset}`, field: node.data.field },
      how: input.transformationDescription ?? input.transformationType ?? node.data.transformationType,
    })),
  );
}

/** The fields of each dataset that take part. */
export function fieldsByDataset(edges: readonly FieldEdge[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const edge of edges) {
    for (const { dataset, field } of [edge.from, edge.to]) {
      const fields = found.get(dataset) ?? new Set();
      fields.add(field);
      found.set(dataset, fields);
    }
  }
  return new Map([...found].map(([dataset, fields]) => [dataset, [...fields].sort()]));
}
