/** The graph query of an address of this page. */
import { type Ask, urlOf } from "../../api/client";

export type Direction = "both" | "upstream" | "downstream";
export const PATH = "/api/v1/lineage";
const HOPS = 4;
const DIRECTIONS: readonly Direction[] = ["both", "upstream", "downstream"];

type Query = Ask<"get", typeof PATH>["query"];

/** Build the query for the graph around a node from the filters in the address. */
export function graphQuery(node: string, query: URLSearchParams) {
  const asOf = query.get("asOf");
  const hops = Number(query.get("hops"));
  return {
    nodeId: node,
    hops: Number.isInteger(hops) && hops > 0 ? hops : HOPS,
    direction: DIRECTIONS.find((each) => each === query.get("direction")) ?? "both",
    ...(asOf ? { asOf } : {}),
  } satisfies Query;
}

/** List the addresses to read first, if the address names a node. */
export function firstReads(query: URLSearchParams): readonly string[] {
  const node = query.get("node");
  return node ? [urlOf(PATH, { query: graphQuery(node, query) })] : [];
}
