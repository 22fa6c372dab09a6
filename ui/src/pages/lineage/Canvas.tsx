/** The drawn graph: laid out once for each structure; states change without moving anything. */
import { Background, type Edge, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "../../kit/Button";
import { type FieldEdge, fieldsByDataset } from "./columns";
import { matching, type Visible, wayThrough } from "./graph";
import { layOut, MANY, type Places } from "./layout";
import { type DrawnNode, GraphNode, HEAD, heightOf, WIDTH } from "./nodes";
import { quickLayout } from "./quick";

const NODE_TYPES = { graph: GraphNode };
const FIT = { padding: 0.12, maxZoom: 1.1, duration: 0 };
const MAP_FROM = 40;
const READABLE = 0.62;
const READABLE_AROUND = 0.85;

interface Props {
  shown: Visible;
  root: string;
  arcs: ReadonlySet<string>;
  columns: readonly FieldEdge[];
  search: string;
  chosen: string | null;
  onChoose: (id: string | null) => void;
  onFocus: (id: string) => void;
}

export function Canvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  );
}

function Inner({ shown, root, arcs, columns, search, chosen, onChoose, onFocus }: Props) {
  const fields = useMemo(() => fieldsByDataset(columns), [columns]);
  const structure = useMemo(() => shown.nodes.map((node) => `${node.id} ${fields.get(node.id)?.length ?? 0}`).join("\n") + shown.links.map((link) => `${link.from}>${link.to}`).join("\n"), [shown, fields]);
  const { places, isBusy } = usePlaces(structure, shown, fields);
  const found = useMemo(() => matching(shown.nodes, search), [shown, search]);
  const way = useMemo(() => (chosen ? wayThrough(shown.links, chosen) : null), [shown, chosen]);
  const nodes = useMemo<DrawnNode[]>(() => {
    if (!places) return [];
    return shown.nodes.flatMap((node) => {
      const place = places.get(node.id);
      if (!place) return [];
      const own = fields.get(node.id) ?? [];
      const mark = search ? (found.has(node.id) ? "found" : "dim") : way ? (way.has(node.id) ? "way" : "dim") : "";
      return [
        {
          id: node.id,
          type: "graph",
          position: place,
          width: WIDTH,
          height: heightOf(own.length),
          selected: node.id === chosen,
          ariaLabel: `${node.type === "JOB" ? "job" : "dataset"} ${node.data.name}`,
          data: { node, fields: own, hidden: shown.hidden.get(node.id) ?? 0, isRoot: node.id === root, isArc: arcs.has(node.id), mark },
        } satisfies DrawnNode,
      ];
    });
  }, [places, shown, fields, arcs, root, chosen, search, found, way]);
  const edges = useMemo<Edge[]>(() => edgesOf(shown, columns, way, search), [shown, columns, way, search]);
  const mover = useRef<string | null>(null);
  return (
    <div className={`canvas ${isBusy ? "busy" : ""}`} aria-busy={isBusy}>
      <ReactFlow<DrawnNode>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onlyRenderVisibleElements
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        minZoom={0.02}
        maxZoom={2}
        zoomOnDoubleClick={false}
        onNodeClick={(_, node) => onChoose(node.id)}
        onNodeDoubleClick={(_, node) => onFocus(node.id)}
        onPaneClick={() => onChoose(null)}
        onSelectionChange={({ nodes: [node] }) => {
          if (node && node.id !== chosen) onChoose(node.id);
        }}
        onMoveStart={(event) => {
          if (event) mover.current = root;
        }}
        deleteKeyCode={null}
        multiSelectionKeyCode={null}
        selectionKeyCode={null}
        aria-label="lineage graph"
      >
        <Background gap={22} size={1} />
        {nodes.length > MAP_FROM && <MiniMap pannable zoomable ariaLabel="map of the graph" nodeColor={colourOf} />}
        <Steering places={places} root={root} found={found} mover={mover} />
      </ReactFlow>
      {isBusy && <div className="canvas-busy">{places ? "Putting in order" : "Laying out"} {shown.nodes.length.toLocaleString("en")} nodes…</div>}
    </div>
  );
}

function colourOf(node: DrawnNode): string {
  if (node.data.node.type !== "JOB") return "var(--idle-fill)";
  return node.data.node.data.latestRun?.state === "FAILED" ? "var(--bad-fill)" : "var(--active-fill)";
}

function edgesOf(shown: Visible, columns: readonly FieldEdge[], way: ReadonlySet<string> | null, search: string): Edge[] {
  const known = new Set(shown.nodes.map((node) => node.id));
  const plain = shown.links.map(({ from, to }): Edge => {
    const isOn = way !== null && way.has(from) && way.has(to);
    return { id: `${from}>${to}`, source: from, target: to, className: way && !search ? (isOn ? "way" : "dim") : search ? "dim" : "" };
  });
  const ofFields = columns
    .filter((edge) => known.has(edge.from.dataset) && known.has(edge.to.dataset))
    .map((edge): Edge => ({
      id: `${edge.from.dataset}.${edge.from.field}>${edge.to.dataset}.${edge.to.field}`,
      source: edge.from.dataset,
      target: edge.to.dataset,
      sourceHandle: `out ${edge.from.field}`,
      targetHandle: `in ${edge.to.field}`,
      className: "column",
    }));
  return ofFields.length ? [...plain.map((edge) => ({ ...edge, className: `${edge.className} faded` })), ...ofFields] : plain;
}

/** Where everything is; the old places stay until the new ones are known. */
function usePlaces(structure: string, shown: Visible, fields: ReadonlyMap<string, readonly string[]>): { places: Places | null; isBusy: boolean } {
  const [laid, setLaid] = useState<{ structure: string; places: Places } | null>(null);
  const wanted = useRef({ shown, fields });
  wanted.current = { shown, fields };
  useEffect(() => {
    let isOver = false;
    const { nodes, links } = wanted.current.shown;
    const sized = nodes.map((node) => ({ id: node.id, width: WIDTH, height: heightOf(wanted.current.fields.get(node.id)?.length ?? 0) }));
    if (nodes.length > MANY) setLaid({ structure: `${structure} at first`, places: quickLayout(sized, links) });
    void layOut(sized, links).then((places) => {
      if (!isOver) setLaid({ structure, places });
    });
    return () => {
      isOver = true;
    };
  }, [structure]);
  return { places: laid?.places ?? null, isBusy: laid?.structure !== structure };
}

/** Zoom buttons, and the movements of the view: to the whole, to the root, to what was found. */
function Steering({ places, root, found, mover }: { places: Places | null; root: string; found: ReadonlySet<string>; mover: RefObject<string | null> }) {
  const flow = useReactFlow();
  useEffect(() => {
    // Whoever has begun to look around is left where they are.
    if (!places || mover.current === root) return;
    void flow.fitView(FIT).then(() => {
      const at = places.get(root);
      // What is too small to be read is shown around its root instead.
      if (at && flow.getZoom() < READABLE) void flow.setCenter(at.x + WIDTH / 2, at.y + HEAD / 2, { zoom: READABLE_AROUND });
    });
  }, [places, root, flow, mover]);
  useEffect(() => {
    if (!places || found.size === 0) return;
    void flow.fitView({ ...FIT, nodes: [...found].slice(0, 50).map((id) => ({ id })), duration: 250 });
  }, [found, places, flow]);
  return (
    <div className="canvas-buttons">
      <Button icon="plus" aria-label="zoom in" onClick={() => void flow.zoomIn()} />
      <Button icon="minus" aria-label="zoom out" onClick={() => void flow.zoomOut()} />
      <Button
        icon="focus"
        aria-label="show all"
        onClick={() => {
          mover.current = root;
          void flow.fitView({ ...FIT, duration: 200 });
        }}
      />
    </div>
  );
}
