/** The lineage around a node: its jobs, arcs and datasets, now or at a former time. */
import { useMemo } from "react";
import { useGet } from "../../api/queries";
import { Button } from "../../kit/Button";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, ProblemNote, Loading } from "../../kit/Async";
import { count, plural } from "../../kit/format";
import { jobNode } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { graphQuery, PATH } from "./graphQuery";
import { Canvas } from "./Canvas";
import { fieldEdges, indirectEdges } from "./columns";
import { Details } from "./Details";
import { matching, visibleGraph } from "./graph";
import "./lineage.css";
import { TimeSlider } from "./TimeSlider";

const HOPS = [1, 2, 3, 4, 6, 10, 20, 50];

export default function Lineage() {
  const [query] = useSearchParams();
  const requested = query.get("node");
  // Without a node in the address, start from the job that was updated last.
  const first = useGet("/api/v1/jobs", requested ? null : { query: { limit: 1 } }, { live: false });
  const job = first.data?.jobs[0];
  const node = requested ?? (job ? jobNode(job.id) : null);
  if (node) return <NodeLineage node={node} />;
  if (first.error) return <ProblemNote problem={first.error} />;
  if (!first.data) return <Loading />;
  return (
    <EmptyState icon="graph" title="No lineage yet">
      Lineage comes from run events. Send the first one, or point a client at this server:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
    </EmptyState>
  );
}

function NodeLineage({ node }: { node: string }) {
  const [query, setQuery] = useSearchParams();
  const ask = graphQuery(node, query);
  const { hops, direction, asOf } = ask;
  const withColumns = query.get("columns") !== null;
  const withIndirect = withColumns && query.get("indirect") !== null;
  const chosen = query.get("chosen");
  const folded = query.get("collapsed") ?? "";
  const collapsed = useMemo(() => new Set(folded.split("\n").filter(Boolean)), [folded]);
  const graph = useGet(PATH, { query: ask }, { keep: true, live: !asOf });
  const columnGraph = useGet(
    "/api/v1/column-lineage",
    withColumns
      ? {
          query: {
            nodeId: node,
            depth: hops,
            withDownstream: direction !== "upstream",
            withIndirect,
            ...(asOf ? { asOf } : {}),
          },
        }
      : null,
    { keep: true, live: !asOf },
  );
  const arcs = useGet("/api/v1/arcs", {}).data?.arcs;
  const arcNodes = useMemo(() => new Set((arcs ?? []).map((arc) => jobNode(arc))), [arcs]);
  const visible = useMemo(
    () => visibleGraph(graph.data?.graph ?? [], node, collapsed),
    [graph.data, node, collapsed],
  );
  const columns = useMemo(
    () =>
      withColumns && columnGraph.data
        ? [...fieldEdges(columnGraph.data.graph), ...indirectEdges(columnGraph.data.indirect ?? [])]
        : [],
    [withColumns, columnGraph.data],
  );
  const words = query.get("q") ?? "";
  const matchCount = useMemo(() => matching(visible.nodes, words).size, [visible, words]);
  const details = visible.nodes.find((each) => each.id === chosen);
  const collapse = (id: string) => {
    const next = new Set(collapsed);
    if (!next.delete(id)) next.add(id);
    setQuery({ collapsed: [...next].join("\n") });
  };
  const focus = (id: string) => setQuery({ node: id, chosen: id, collapsed: null }, { push: true });
  return (
    <div className="lineage">
      <header className="lineage-bar">
        <h1>Lineage</h1>
        <label className="row">
          Hops
          <select
            className="field"
            value={hops}
            onChange={(event) => setQuery({ hops: event.target.value })}
          >
            {(HOPS.includes(hops) ? HOPS : [...HOPS, hops]).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <label className="row">
          Direction
          <select
            className="field"
            value={direction}
            onChange={(event) =>
              setQuery({ direction: event.target.value === "both" ? null : event.target.value })
            }
          >
            <option value="both">both ways</option>
            <option value="upstream">upstream</option>
            <option value="downstream">downstream</option>
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={withColumns}
            onChange={(event) => setQuery({ columns: event.target.checked })}
          />{" "}
          columns
        </label>
        {withColumns && (
          <label
            className="check"
            title="The keys of joins, filters and sorts, drawn as dotted lines to the datasets that depend on them"
          >
            <input
              type="checkbox"
              checked={withIndirect}
              onChange={(event) => setQuery({ indirect: event.target.checked })}
            />{" "}
            indirect
          </label>
        )}
        <SearchField label="Find in this graph" />
        {graph.data && (
          <span className="faint num" role="status">
            {plural(visible.nodes.length, "node")}
            {words && `, ${matchCount ? count(matchCount) : "none"} found`}
          </span>
        )}
        {collapsed.size > 0 && (
          <Button kind="quiet" onClick={() => setQuery({ collapsed: null })}>
            Expand all
          </Button>
        )}
      </header>
      <div className="lineage-body">
        {graph.error && <ProblemNote problem={graph.error} />}
        {graph.data ? (
          <Canvas
            visible={visible}
            root={node}
            arcs={arcNodes}
            columns={columns}
            search={words}
            chosen={chosen}
            onChoose={(id) => setQuery({ chosen: id })}
            onFocus={focus}
          />
        ) : (
          !graph.error && <Loading />
        )}
        {details && (
          <Details
            node={details}
            isCollapsed={collapsed.has(details.id)}
            isRoot={details.id === node}
            onClose={() => setQuery({ chosen: null })}
            onFocus={() => focus(details.id)}
            onCollapse={() => collapse(details.id)}
          />
        )}
      </div>
      <footer className="lineage-bar">
        <TimeSlider />
      </footer>
    </div>
  );
}
