/** The graph on the screen: laid out once for each structure, so that a new state moves nothing. */
import {
  Background,
  type Edge,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { lookOf } from "../../kit/states";
import { type FieldEdge, fieldsByDataset } from "./columns";
import { type LineageNode, matching, type Visible, pathThrough } from "./graph";
import { layOut, MANY, type Places, type Sized } from "./layout";
import { type DrawnNode, GraphNode, heightOf, WIDTH } from "./nodes";
import { quickLayout } from "./quickLayout";
import { Sketch, type Sketched } from "./Sketch";
import { SmallMap } from "./SmallMap";
import { ViewControls, ZOOM } from "./ViewControls";
import { nodeAt, windowOf, within } from "./window";

const NODE_TYPES = { graph: GraphNode };
const MAP_FROM = 40;
/** The distance in pixels at which a click hits a node that is only drawn. */
const NEAR = 3;

interface Props {
  visible: Visible;
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
      <GraphCanvas {...props} />
    </ReactFlowProvider>
  );
}

function GraphCanvas({ visible, root, arcs, columns, search, chosen, onChoose, onFocus }: Props) {
  const fields = useMemo(() => fieldsByDataset(columns), [columns]);
  const sized = useMemo(
    () =>
      visible.nodes.map((node): Sized => ({
        id: node.id,
        width: WIDTH,
        height: heightOf(fields.get(node.id)?.length ?? 0),
      })),
    [visible, fields],
  );
  const structure = useMemo(
    () =>
      sized.map((node) => `${node.id} ${node.height}`).join("\n") +
      visible.links.map((link) => `${link.from}>${link.to}`).join("\n"),
    [sized, visible],
  );
  const { places, isBusy } = usePlaces(structure, sized, visible);
  const matches = useMemo(() => matching(visible.nodes, search), [visible, search]);
  // The chosen node is marked at once; the path through it may be most of the graph, so it follows.
  const marked = useDeferredValue(chosen);
  const way = useMemo(
    () => (marked ? pathThrough(visible.links, marked) : null),
    [visible, marked],
  );
  const flow = useReactFlow();
  const isLarge = sized.length > MANY;
  const [steered, setSteered] = useState<string | null>(null);
  const isPlaced = steered === root;
  const area = useStore((state) =>
    isLarge ? (isPlaced ? windowOf(state.transform, state.width, state.height) : "far") : "all",
  );
  const inView = useMemo(
    () => (isLarge && places ? within(area, sized, places) : null),
    [isLarge, area, sized, places],
  );
  const markOf = useCallback(
    (id: string) =>
      search ? (matches.has(id) ? "found" : "dim") : way ? (way.has(id) ? "way" : "dim") : "",
    [search, matches, way],
  );
  const plain = useMemo<DrawnNode[]>(() => {
    if (!places) return [];
    return visible.nodes.flatMap((node, at) => {
      const place = places.get(node.id);
      if (!place || (inView && !inView.has(node.id))) return [];
      const own = fields.get(node.id) ?? [];
      return [
        {
          id: node.id,
          type: "graph",
          position: place,
          width: WIDTH,
          height: sized[at]?.height ?? 0,
          ariaLabel: `${node.type === "JOB" ? "job" : "dataset"} ${node.data.name}`,
          data: {
            node,
            fields: own,
            hidden: visible.hidden.get(node.id) ?? 0,
            isRoot: node.id === root,
            isArc: arcs.has(node.id),
            isJoined: !inView || own.length > 0,
            mark: markOf(node.id),
          },
        } satisfies DrawnNode,
      ];
    });
  }, [places, visible, sized, fields, arcs, root, inView, markOf]);
  const nodes = useMemo(
    () => plain.map((node) => (node.id === chosen ? { ...node, selected: true } : node)),
    [plain, chosen],
  );
  const edges = useMemo<Edge[]>(
    () =>
      edgesOf(
        isLarge ? [] : visible.links,
        new Set(plain.map((node) => node.id)),
        columns,
        way,
        search,
      ),
    [isLarge, visible, plain, columns, way, search],
  );
  const sketched = useMemo<Sketched | null>(() => {
    if (!isLarge || !places) return null;
    const spots = visible.nodes.map((node, at) => ({
      ...(sized[at] as Sized),
      color: colorOf(node),
      isDim: markOf(node.id) === "dim",
    }));
    return { spots, links: visible.links, places, way };
  }, [isLarge, places, visible, sized, way, markOf]);
  const mover = useRef<string | null>(null);
  const move = useCallback(() => {
    mover.current = root;
  }, [root]);
  return (
    <div className={`canvas ${isBusy ? "busy" : ""}`} aria-busy={isBusy}>
      {sketched && isPlaced && <Sketch of={sketched} chosen={chosen} isFar={area === "far"} />}
      <ReactFlow<DrawnNode>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onlyRenderVisibleElements={!isLarge}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        minZoom={ZOOM.least}
        maxZoom={ZOOM.most}
        zoomOnDoubleClick={false}
        onNodeClick={(_, node) => onChoose(node.id)}
        onNodeDoubleClick={(_, node) => onFocus(node.id)}
        onPaneClick={(event) => {
          const point = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
          onChoose(
            places && area === "far" ? nodeAt(point, NEAR / flow.getZoom(), sized, places) : null,
          );
        }}
        onSelectionChange={({ nodes: [node] }) => {
          if (node && node.id !== chosen) onChoose(node.id);
        }}
        onMoveStart={(event) => {
          if (event) move();
        }}
        deleteKeyCode={null}
        multiSelectionKeyCode={null}
        selectionKeyCode={null}
        aria-label="lineage graph"
      >
        <Background gap={22} size={1} />
        {!isLarge && nodes.length > MAP_FROM && (
          <MiniMap
            pannable
            zoomable
            ariaLabel="map of the graph"
            nodeColor={(node: DrawnNode) => `var(${colorOf(node.data.node)})`}
          />
        )}
        <ViewControls
          sized={sized}
          places={places}
          root={root}
          matches={matches}
          mover={mover}
          onSteered={() => setSteered(root)}
        />
      </ReactFlow>
      {sketched && isPlaced && <SmallMap of={sketched} onMove={move} />}
      {isBusy && (
        <div className="canvas-busy">
          Laying out {visible.nodes.length.toLocaleString("en")} nodes…
        </div>
      )}
    </div>
  );
}

function colorOf(node: LineageNode): string {
  if (node.type !== "JOB") return "--idle-fill";
  return `--${lookOf(node.data.latestRun?.state).tone}-fill`;
}

function edgesOf(
  links: Visible["links"],
  known: ReadonlySet<string>,
  columns: readonly FieldEdge[],
  way: ReadonlySet<string> | null,
  search: string,
): Edge[] {
  const plain = links.map(({ from, to }): Edge => {
    const isOn = way !== null && way.has(from) && way.has(to);
    return {
      id: `${from}>${to}`,
      source: from,
      target: to,
      className: way && !search ? (isOn ? "way" : "dim") : search ? "dim" : "",
    };
  });
  const ofFields = columns
    .filter((edge) => known.has(edge.from.dataset) && known.has(edge.to.dataset))
    .map((edge): Edge => ({
      id: `${edge.from.dataset}.${edge.from.field}>${edge.to.dataset}.${edge.to.field ?? ""}`,
      source: edge.from.dataset,
      target: edge.to.dataset,
      sourceHandle: `out ${edge.from.field}`,
      ...(edge.to.field === null ? {} : { targetHandle: `in ${edge.to.field}` }),
      className: edge.isIndirect ? "column indirect" : "column",
    }));
  return ofFields.length
    ? [...plain.map((edge) => ({ ...edge, className: `${edge.className} faded` })), ...ofFields]
    : plain;
}

/** Lay out the graph. The former layout stays until the next is ready; a large graph has it at once. */
function usePlaces(
  structure: string,
  sized: readonly Sized[],
  visible: Visible,
): { places: Places | null; isBusy: boolean } {
  const [graph, setGraph] = useState({ structure, sized, links: visible.links });
  if (graph.structure !== structure) setGraph({ structure, sized, links: visible.links });
  const isLarge = graph.sized.length > MANY;
  const quick = useMemo(
    () => (isLarge ? quickLayout(graph.sized, graph.links) : null),
    [isLarge, graph],
  );
  const [laid, setLaid] = useState<{ structure: string; places: Places } | null>(null);
  useEffect(() => {
    let isOver = false;
    if (!isLarge) {
      void layOut(graph.sized, graph.links).then((places) => {
        if (!isOver) setLaid({ structure: graph.structure, places });
      });
    }
    return () => {
      isOver = true;
    };
  }, [isLarge, graph]);
  if (quick) return { places: quick, isBusy: false };
  return { places: laid?.places ?? null, isBusy: laid?.structure !== structure };
}
