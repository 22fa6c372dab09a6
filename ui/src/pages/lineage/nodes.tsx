/** The nodes of the graph: datasets and jobs. */
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { Icon } from "../../kit/Icon";
import { lookOf } from "../../kit/states";
import type { LineageNode } from "./graph";

export interface Drawn extends Record<string, unknown> {
  readonly node: LineageNode;
  readonly fields: readonly string[];
  readonly hidden: number;
  readonly isRoot: boolean;
  readonly isArc: boolean;
  /** Whether edges attach to it; the edges of a large graph are drawn beneath. */
  readonly isJoined: boolean;
  readonly mark: "found" | "way" | "dim" | "";
}

export type DrawnNode = Node<Drawn>;

export const WIDTH = 196;
export const HEAD = 46;
export const FIELD = 20;

export const heightOf = (fields: number): number => HEAD + (fields ? fields * FIELD + 6 : 0);

export const GraphNode = memo(function GraphNode({ data, selected }: NodeProps<DrawnNode>) {
  const { node, fields, hidden, isRoot, isArc, isJoined, mark } = data;
  const isJob = node.type === "JOB";
  const state = node.type === "JOB" ? node.data.latestRun?.state : undefined;
  const look = lookOf(state);
  const name = node.type === "JOB" ? node.data.simpleName : node.data.name;
  const under =
    node.type === "JOB"
      ? state
        ? look.word
        : "no run yet"
      : `${node.data.currentVersionNumber ? `V${node.data.currentVersionNumber}` : "no version"}${node.data.deleted ? ", hidden" : ""}`;
  return (
    <div
      className={`graph-node ${isJob ? "job" : "dataset"} tone-${isJob ? look.tone : "none"} ${mark} ${selected ? "chosen" : ""} ${isRoot ? "root" : ""}`}
      title={`${node.data.namespace} / ${node.data.name}`}
    >
      {isJoined && <Handle type="target" position={Position.Left} isConnectable={false} />}
      <div className="graph-node-head">
        <Icon name={isJob ? "gear" : "table"} size={15} />
        <div>
          <div className="graph-node-name">{shortName(name)}</div>
          <div className="graph-node-under">
            {isJob && state && <Icon name={look.icon} size={11} />} {isArc ? "arc, " : ""}
            {under}
          </div>
        </div>
        {hidden > 0 && <span className="graph-node-more">+{hidden}</span>}
      </div>
      {fields.map((field, at) => (
        <div key={field} className="graph-field" style={{ height: FIELD }}>
          <Handle
            type="target"
            id={`in ${field}`}
            position={Position.Left}
            isConnectable={false}
            style={{ top: HEAD + at * FIELD + FIELD / 2 }}
          />
          {field}
          <Handle
            type="source"
            id={`out ${field}`}
            position={Position.Right}
            isConnectable={false}
            style={{ top: HEAD + at * FIELD + FIELD / 2 }}
          />
        </div>
      ))}
      {isJoined && <Handle type="source" position={Position.Right} isConnectable={false} />}
    </div>
  );
});

function shortName(name: string): string {
  return name.length > 26 ? `…${name.slice(-25)}` : name;
}
