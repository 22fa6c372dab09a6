/** A run, its parent and the runs that it began, each a bar over the same time. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Panel } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { StatusIcon } from "../../kit/Status";
import { lookOf } from "../../kit/status";
import { useNow } from "../../kit/Time";
import { plural, span } from "../../kit/words";
import { Link } from "../../router/Link";
import { runPlace } from "../../router/places";

type Member = Schemas["FamilyRun"];

export function Gantt({ run }: { run: Schemas["Run"] }) {
  // A run that is part of another is shown among its brothers and sisters.
  const root = run.parent?.runId ?? run.id;
  const family = useGet("/api/v1/jobs/runs/{run}/family", { path: { run: root } });
  return (
    <Shown of={family}>
      {(value) =>
        value.runs.length > 1 ? (
          <Panel title={run.parent ? "The run it is part of" : "The runs that it began"} aside={`${plural(value.runs.length, "run")}${value.isCut ? " and more" : ""}`}>
            <Chart runs={value.runs} self={run.id} />
          </Panel>
        ) : null
      }
    </Shown>
  );
}

function Chart({ runs, self }: { runs: readonly Member[]; self: string }) {
  const now = useNow();
  const timed = ordered(runs).map((run) => ({ run, from: Date.parse(run.startedAt ?? run.endedAt ?? ""), to: run.endedAt ? Date.parse(run.endedAt) : now }));
  const first = Math.min(...timed.map((each) => each.from).filter(Number.isFinite));
  const whole = Math.max(1, ...timed.map((each) => each.to - first));
  return (
    <ul className="gantt">
      <li className="axis" aria-hidden="true">
        <span />
        <span className="lane">
          <span>0</span>
          <span>{span(whole / 4000)}</span>
          <span>{span(whole / 2000)}</span>
          <span>{span((whole * 3) / 4000)}</span>
          <span>{span(whole / 1000)}</span>
        </span>
        <span />
      </li>
      {timed.map(({ run, from, to }) => {
        const look = lookOf(run.state);
        return (
          <li key={run.id} className={run.id === self ? "self" : ""}>
            <span style={{ paddingLeft: run.depth * 14 }}>
              <StatusIcon of={run.state} />{" "}
              <Link className="name" to={runPlace(run.id)} title={`${run.job.name}, ${run.id}`} aria-current={run.id === self ? "true" : undefined}>
                {run.job.name}
              </Link>
            </span>
            <span className="lane">{Number.isFinite(from) && <span className={`bar tone-${look.tone}`} style={{ left: `${((from - first) / whole) * 100}%`, width: `${(Math.max(0, to - from) / whole) * 100}%` }} />}</span>
            <span className="num faint">{Number.isFinite(from) ? span((to - from) / 1000) : "–"}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** Children after their parent, in the order in which they began. */
export function ordered(runs: readonly Member[]): readonly Member[] {
  const known = new Set(runs.map((run) => run.id));
  const children = new Map<string | null, Member[]>();
  for (const run of runs) {
    const parent = run.depth > 0 && run.parent && known.has(run.parent) ? run.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), run]);
  }
  const found: Member[] = [];
  const visit = (run: Member) => {
    if (found.includes(run)) return;
    found.push(run);
    for (const child of children.get(run.id) ?? []) visit(child);
  };
  for (const run of children.get(null) ?? []) visit(run);
  return found;
}
