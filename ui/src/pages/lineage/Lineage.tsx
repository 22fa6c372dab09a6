/** What is made from what: jobs, arcs and datasets around a node, now or as it was. */
import { useMemo } from "react";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { SearchField } from "../../kit/SearchField";
import { Empty, Trouble, Waiting } from "../../kit/Shown";
import { count, plural } from "../../kit/words";
import { jobNode } from "../../router/places";
import { useQuery } from "../../router/router";
import { graphAsked, PATH } from "./asked";
import { Canvas } from "./Canvas";
import { fieldEdges, indirectEdges } from "./columns";
import { Details } from "./Details";
import { matching, visible } from "./graph";
import "./lineage.css";
import { TimeSlider } from "./TimeSlider";

const HOPS = [1, 2, 3, 4, 6, 10, 20, 50];

export default function Lineage() {
  const [query] = useQuery();
  const asked = query.get("node");
  // Nobody has said where to begin: with the job that was updated last.
  const first = useGet("/api/v1/jobs", asked ? null : { query: { limit: 1 } }, { live: false });
  const job = first.value?.jobs[0];
  const node = asked ?? (job ? jobNode(job.id) : null);
  if (node) return <Around node={node} />;
  if (first.problem) return <Trouble problem={first.problem} />;
  if (!first.value) return <Waiting />;
  return (
    <Empty icon="graph" title="There is no lineage yet">
      It is drawn from what runs tell. Send the first run, or point a client at this server:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
    </Empty>
  );
}

function Around({ node }: { node: string }) {
  const [query, setQuery] = useQuery();
  const ask = graphAsked(node, query);
  const { hops, direction, asOf } = ask;
  const withColumns = query.get("columns") !== null;
  const withIndirect = withColumns && query.get("indirect") !== null;
  const chosen = query.get("chosen");
  const folded = query.get("collapsed") ?? "";
  const collapsed = useMemo(() => new Set(folded.split("\n").filter(Boolean)), [folded]);
  const graph = useGet(PATH, { query: ask }, { keep: true, live: !asOf });
  const columnGraph = useGet("/api/v1/column-lineage", withColumns ? { query: { nodeId: node, depth: hops, withDownstream: direction !== "upstream", withIndirect, ...(asOf ? { asOf } : {}) } } : null, { keep: true, live: !asOf });
  const arcs = useGet("/api/v1/arcs", {}).value?.arcs;
  const arcNodes = useMemo(() => new Set((arcs ?? []).map((arc) => jobNode(arc))), [arcs]);
  const shown = useMemo(() => visible(graph.value?.graph ?? [], node, collapsed), [graph.value, node, collapsed]);
  const columns = useMemo(() => (withColumns && columnGraph.value ? [...fieldEdges(columnGraph.value.graph), ...indirectEdges(columnGraph.value.indirect ?? [])] : []), [withColumns, columnGraph.value]);
  const words = query.get("q") ?? "";
  const found = useMemo(() => matching(shown.nodes, words).size, [shown, words]);
  const details = shown.nodes.find((each) => each.id === chosen);
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
          <select className="field" value={hops} onChange={(event) => setQuery({ hops: event.target.value })}>
            {(HOPS.includes(hops) ? HOPS : [...HOPS, hops]).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <label className="row">
          Direction
          <select className="field" value={direction} onChange={(event) => setQuery({ direction: event.target.value === "both" ? null : event.target.value })}>
            <option value="both">both ways</option>
            <option value="upstream">upstream</option>
            <option value="downstream">downstream</option>
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={withColumns} onChange={(event) => setQuery({ columns: event.target.checked })} /> columns
        </label>
        {withColumns && (
          <label className="check" title="The keys of joins, filters and sorts, drawn as dotted lines to the datasets that depend on them">
            <input type="checkbox" checked={withIndirect} onChange={(event) => setQuery({ indirect: event.target.checked })} /> indirect
          </label>
        )}
        <SearchField label="Find in this graph" />
        {graph.value && (
          <span className="faint num" role="status">
            {plural(shown.nodes.length, "node")}
            {words && `, ${found ? count(found) : "none"} named like that`}
          </span>
        )}
        {collapsed.size > 0 && (
          <Button kind="quiet" onClick={() => setQuery({ collapsed: null })}>
            Expand all
          </Button>
        )}
      </header>
      <div className="lineage-body">
        {graph.problem && <Trouble problem={graph.problem} />}
        {graph.value ? <Canvas shown={shown} root={node} arcs={arcNodes} columns={columns} search={words} chosen={chosen} onChoose={(id) => setQuery({ chosen: id })} onFocus={focus} /> : !graph.problem && <Waiting />}
        {details && <Details node={details} isCollapsed={collapsed.has(details.id)} isRoot={details.id === node} onClose={() => setQuery({ chosen: null })} onFocus={() => focus(details.id)} onCollapse={() => collapse(details.id)} />}
      </div>
      <footer className="lineage-bar">
        <TimeSlider />
      </footer>
    </div>
  );
}
