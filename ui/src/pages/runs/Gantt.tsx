/** A run, its parent and its child runs, each a bar over the same time. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { StatusIcon } from "../../kit/Status";
import { lookOf } from "../../kit/states";
import { useNow } from "../../kit/Time";
import { plural, span } from "../../kit/format";
import { Link } from "../../router/Link";
import { runAddress } from "../../router/addresses";

type Member = Schemas["FamilyRun"];

export function Gantt({ run }: { run: Schemas["Run"] }) {
  // A child run is shown among its siblings.
  const root = run.parent?.runId ?? run.id;
  const family = useGet("/api/v1/jobs/runs/{run}/family", { path: { run: root } });
  return (
    <Async of={family}>
      {(value) =>
        value.runs.length > 1 ? (
          <Panel
            title={run.parent ? "Parent run" : "Child runs"}
            aside={`${plural(value.runs.length, "run")}${value.isCut ? " and more" : ""}`}
          >
            <Chart runs={value.runs} self={run.id} />
          </Panel>
        ) : null
      }
    </Async>
  );
}

function Chart({ runs, self }: { runs: readonly Member[]; self: string }) {
  const now = useNow();
  const timed = ordered(runs).map((run) => ({
    run,
    from: Date.parse(run.startedAt ?? run.endedAt ?? ""),
    to: run.endedAt ? Date.parse(run.endedAt) : now,
  }));
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
              <Link
                className="name"
                to={runAddress(run.id)}
                title={`${run.job.name}, ${run.id}`}
                aria-current={run.id === self ? "true" : undefined}
              >
                {run.job.name}
              </Link>
            </span>
            <span className="lane">
              {Number.isFinite(from) && (
                <span
                  className={`bar tone-${look.tone}`}
                  style={{
                    left: `${((from - first) / whole) * 100}%`,
                    width: `${(Math.max(0, to - from) / whole) * 100}%`,
                  }}
                />
              )}
            </span>
            <span className="num faint">
              {Number.isFinite(from) ? span((to - from) / 1000) : "–"}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** Order children after their parent, by their start. */
export function ordered(runs: readonly Member[]): readonly Member[] {
  const ids = new Set(runs.map((run) => run.id));
  const children = new Map<string | null, Member[]>();
  for (const run of runs) {
    const parent = run.depth > 0 && run.parent && ids.has(run.parent) ? run.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), run]);
  }
  const result: Member[] = [];
  const visit = (run: Member) => {
    if (result.includes(run)) return;
    result.push(run);
    for (const child of children.get(run.id) ?? []) visit(child);
  };
  for (const run of children.get(null) ?? []) visit(run);
  return result;
}
