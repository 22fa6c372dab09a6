/** The runs of a job: the newest along a line of time, and all in a table. */
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { RunName } from "../../kit/Names";
import { usePages } from "../../kit/pages";
import { Panel } from "../../kit/Panel";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { lookOf } from "../../kit/status";
import { type Column, Table } from "../../kit/Table";
import { Lasted, Time, useNow } from "../../kit/Time";
import { plural, span } from "../../kit/words";
import { Link } from "../../router/Link";
import { runPlace } from "../../router/places";
import { lotOf } from "../runs/facets";

type Run = Schemas["Run"];
const DRAWN = 100;
const LOGGED = 1000;
const ENDS = new Set(["fail", "expire", "release"]);
const WIDTH = 1000;
const HEIGHT = 110;

/** How a run failed by its own words, or by those with which its claim ended. */
const columns = (causes: ReadonlyMap<string, string>): Column<Run>[] => [
  { title: "run", cell: (run) => <RunName of={run.id} />, width: "120px" },
  { title: "state", cell: (run) => <Status of={run.state} />, width: "116px" },
  { title: "lot", cell: (run) => <span className="mono">{lotOf(run.facets) ?? ""}</span>, width: "150px", wide: true },
  { title: "began", cell: (run) => <Time at={run.startedAt} />, width: "100px" },
  { title: "took", cell: (run) => <Lasted from={run.startedAt} to={run.endedAt} />, width: "100px", end: true },
  { title: "made", cell: (run) => run.outputDatasetVersions.map((each) => `${each.datasetVersionId.name} V${each.number ?? "?"}`).join(", "), wide: true },
  { title: "cause", cell: (run) => <Cause of={run.cause ?? causes.get(run.id) ?? ""} />, wide: true },
];

function Cause({ of: text }: { of: string }) {
  return <span title={text}>{text}</span>;
}

/** Why claims of a job failed, by their runs, as far back as one page of its log goes. */
function useCauses(path: { namespace: string; job: string }): ReadonlyMap<string, string> {
  const entries = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", { path, query: { limit: LOGGED } }).value?.entries;
  return useMemo(() => new Map((entries ?? []).flatMap(({ action, run, why }) => (run && ENDS.has(action) ? [[run, why] as const] : []))), [entries]);
}

export function Runs({ job }: { job: Schemas["Job"] }) {
  const ask = { path: { namespace: job.namespace, job: job.name } };
  const newest = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/runs", { ...ask, query: { limit: DRAWN } });
  const list = usePages("/api/v1/namespaces/{namespace}/jobs/{job}/runs", ask, (answer) => ({ items: answer.runs, total: answer.totalCount }));
  const causes = useCauses(ask.path);
  const shown = useMemo(() => columns(causes), [causes]);
  if (list.problem) return <Trouble problem={list.problem} />;
  if (list.isReady && list.count === 0) return <Empty icon="play" title="It has not run yet" />;
  return (
    <>
      <Shown of={newest}>{(value) => <Timeline runs={value.runs} />}</Shown>
      <Panel title="Runs" aside={`${list.said("run")}, newest first`}>
        <Table columns={shown} label="runs" count={list.count} row={list.row} onRange={list.onRange} to={(run) => runPlace(run.id)} rows={14} />
      </Panel>
    </>
  );
}

/** Each run a bar: where it began, how long it took, how it ended. The keyboard finds them in the table. */
function Timeline({ runs }: { runs: readonly Run[] }) {
  const now = useNow();
  const drawn = runs.filter((run) => run.startedAt).map((run) => ({ run, from: Date.parse(run.startedAt ?? ""), to: run.endedAt ? Date.parse(run.endedAt) : now }));
  if (drawn.length === 0) return null;
  const longest = Math.max(1, ...drawn.map((each) => each.to - each.from));
  const step = WIDTH / Math.max(20, drawn.length);
  const ordered = [...drawn].reverse();
  return (
    <Panel title="How long the last runs took" aside={`${plural(drawn.length, "run")}, the newest at the right; the longest took ${span(longest / 1000)}`}>
      <div className="timeline">
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" height={HEIGHT} role="group" aria-label="the last runs">
          <line x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
          {ordered.map(({ run, from, to }, at) => {
            const height = Math.max(4, ((to - from) / longest) * (HEIGHT - 8));
            const look = lookOf(run.state);
            return (
              <Link key={run.id} to={runPlace(run.id)} className={`tone-${look.tone}`} tabIndex={-1} aria-label={`run ${run.id.slice(-12)}, ${look.word}, ${span((to - from) / 1000)}`}>
                <title>{`${look.word}, ${span((to - from) / 1000)}, began ${run.startedAt}`}</title>
                <rect x={WIDTH - (ordered.length - at) * step + step * 0.12} y={HEIGHT - 1 - height} width={step * 0.76} height={height} rx="2" />
              </Link>
            );
          })}
        </svg>
      </div>
    </Panel>
  );
}
