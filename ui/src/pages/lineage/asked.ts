/** Which graph an address of this page asks for. */
import { type Ask, urlOf } from "../../api/client";

export type Direction = "both" | "upstream" | "downstream";
export const PATH = "/api/v1/lineage";
const HOPS = 4;
const DIRECTIONS: readonly Direction[] = ["both", "upstream", "downstream"];

type Query = Ask<"get", typeof PATH>["query"];

/** The question for the graph around a node, as the filters in the address have it. */
export function graphAsked(node: string, query: URLSearchParams) {
  const asOf = query.get("asOf");
  const hops = Number(query.get("hops"));
  return {
    nodeId: node,
    hops: Number.isInteger(hops) && hops > 0 ? hops : HOPS,
    direction: DIRECTIONS.find((each) => each === query.get("direction")) ?? "both",
    ...(asOf ? { asOf } : {}),
  } satisfies Query;
}

/** What is read first, if the address names a node. */
export function firstReads(query: URLSearchParams): readonly string[] {
  const node = query.get("node");
  return node ? [urlOf(PATH, { query: graphAsked(node, query) })] : [];
}
