/** The runs of a job: a chart of the newest, and a table of all. */
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { RunLink } from "../../kit/links";
import { usePagedList } from "../../kit/usePagedList";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async, ProblemNote } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { lookOf } from "../../kit/states";
import { type Column, Table } from "../../kit/Table";
import { Duration, Time, useNow } from "../../kit/Time";
import { plural, span } from "../../kit/format";
import { Link } from "../../router/Link";
import { runAddress } from "../../router/addresses";
import { lotOf } from "../runs/facets";

type Run = Schemas["Run"];
const DRAWN = 100;
const LOGGED = 1000;
const ENDS = new Set(["fail", "expire", "release"]);
const WIDTH = 1000;
const HEIGHT = 110;

/** The columns; the cause of a failure is that of the run or of the end of its claim. */
const columns = (causes: ReadonlyMap<string, string>): Column<Run>[] => [
  { title: "run", cell: (run) => <RunLink of={run.id} />, width: "120px" },
  { title: "state", cell: (run) => <Status of={run.state} />, width: "116px" },
  {
    title: "lot",
    cell: (run) => <span className="mono">{lotOf(run.facets) ?? ""}</span>,
    width: "150px",
    wide: true,
  },
  { title: "started", cell: (run) => <Time at={run.startedAt} />, width: "100px" },
  {
    title: "took",
    cell: (run) => <Duration from={run.startedAt} to={run.endedAt} />,
    width: "100px",
    end: true,
  },
  {
    title: "made",
    cell: (run) =>
      run.outputDatasetVersions
        .map((each) => `${each.datasetVersionId.name} V${each.number ?? "?"}`)
        .join(", "),
    wide: true,
  },
  {
    title: "cause",
    cell: (run) => <CauseText of={run.cause ?? causes.get(run.id) ?? ""} />,
    wide: true,
  },
];

function CauseText({ of: text }: { of: string }) {
  return <span title={text}>{text}</span>;
}

/** Read why claims of a job failed, by run, from the last page of its log. */
function useCauses(path: { namespace: string; job: string }): ReadonlyMap<string, string> {
  const entries = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", {
    path,
    query: { limit: LOGGED },
  }).data?.entries;
  return useMemo(
    () =>
      new Map(
        (entries ?? []).flatMap(({ action, run, why }) =>
          run && ENDS.has(action) ? [[run, why] as const] : [],
        ),
      ),
    [entries],
  );
}

export function Runs({ job }: { job: Schemas["Job"] }) {
  const ask = { path: { namespace: job.namespace, job: job.name } };
  const newest = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/runs", {
    ...ask,
    query: { limit: DRAWN },
  });
  const list = usePagedList("/api/v1/namespaces/{namespace}/jobs/{job}/runs", ask, (answer) => ({
    items: answer.runs,
    total: answer.totalCount,
  }));
  const causes = useCauses(ask.path);
  const tableColumns = useMemo(() => columns(causes), [causes]);
  if (list.problem) return <ProblemNote problem={list.problem} />;
  if (list.isReady && list.count === 0) return <EmptyState icon="play" title="No run yet" />;
  return (
    <>
      <Async of={newest}>{(value) => <Timeline runs={value.runs} />}</Async>
      <Panel title="Runs" aside={`${list.countText("run")}, newest first`}>
        <Table
          columns={tableColumns}
          label="runs"
          count={list.count}
          row={list.row}
          onRange={list.onRange}
          to={(run) => runAddress(run.id)}
          rows={14}
        />
      </Panel>
    </>
  );
}

/** A bar for each run, with its duration and state. Keyboard users find the runs in the table. */
function Timeline({ runs }: { runs: readonly Run[] }) {
  const now = useNow();
  const drawn = runs
    .filter((run) => run.startedAt)
    .map((run) => ({
      run,
      from: Date.parse(run.startedAt ?? ""),
      to: run.endedAt ? Date.parse(run.endedAt) : now,
    }));
  if (drawn.length === 0) return null;
  const longest = Math.max(1, ...drawn.map((each) => each.to - each.from));
  const step = WIDTH / Math.max(20, drawn.length);
  const ordered = [...drawn].reverse();
  return (
    <Panel
      title="Duration of the last runs"
      aside={`${plural(drawn.length, "run")}, newest on the right; the longest took ${span(longest / 1000)}`}
    >
      <div className="timeline">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          height={HEIGHT}
          role="group"
          aria-label="the last runs"
        >
          <line x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
          {ordered.map(({ run, from, to }, at) => {
            const height = Math.max(4, ((to - from) / longest) * (HEIGHT - 8));
            const look = lookOf(run.state);
            return (
              <Link
                key={run.id}
                to={runAddress(run.id)}
                className={`tone-${look.tone}`}
                tabIndex={-1}
                aria-label={`run ${run.id.slice(-12)}, ${look.word}, ${span((to - from) / 1000)}`}
              >
                <title>{`${look.word}, ${span((to - from) / 1000)}, started ${run.startedAt}`}</title>
                <rect
                  x={WIDTH - (ordered.length - at) * step + step * 0.12}
                  y={HEIGHT - 1 - height}
                  width={step * 0.76}
                  height={height}
                  rx="2"
                />
              </Link>
            );
          })}
        </svg>
      </div>
    </Panel>
  );
}
