/** Runs the arc that makes a dataset on a range of its lots: seen first, then begun. */
import { type FormEvent, useState } from "react";
import { call, type Problem, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { confirm } from "../../kit/Confirm";
import { JobName, WorkName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Empty, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { count, plural } from "../../kit/words";
import { navigate } from "../../router/router";
import { backfillPlace } from "../replay/progress";

const PATH = "/api/v1/namespaces/{namespace}/arcs/{arc}/backfills";
type Plan = Schemas["penstock.arcs.backfill_plan.Plan"];

interface Named {
  readonly namespace: string;
  readonly name: string;
}

interface Props {
  dataset: Named;
  first: string;
  last: string;
  /** Whether it is the whole range that is shown, and not one gap. */
  isAll: boolean;
}

export function BackfillGap({ dataset, first, last, isAll }: Props) {
  const arcs = useGet("/api/v1/arcs", {}).value?.arcs;
  const maker = arcs?.find((arc) => arc.outputs.some((output) => output.dataset === dataset.name && (output.namespace || arc.namespace) === dataset.namespace));
  if (!arcs) return null;
  return (
    <Panel title={isAll ? "Backfill everything that failed or is missing" : "Backfill this range"} aside={maker && <>made by <JobName of={maker} /></>}>
      {maker ? (
        <Offered says>
          <Asked key={`${first} ${last}`} arc={{ namespace: maker.namespace, name: maker.name }} first={first} last={last} />
        </Offered>
      ) : (
        <Empty icon="gear" title="No arc makes this dataset">
          Its lots come from outside, or from a job that is not an arc: let those who make it send them again.
        </Empty>
      )}
    </Panel>
  );
}

function Asked({ arc, first, last }: { arc: Named; first: string; last: string }) {
  const [bounds, setBounds] = useState({ from: first, to: last, maxRunning: 4 });
  const [plan, setPlan] = useState<Plan | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const path = { namespace: arc.namespace, arc: arc.name };
  const change = (next: Partial<typeof bounds>) => {
    setBounds({ ...bounds, ...next });
    setPlan(null);
  };
  async function preview(event: FormEvent): Promise<void> {
    event.preventDefault();
    const answer = await call("post", PATH, { path, body: { ...bounds, dryRun: true } });
    setProblem(answer.ok ? null : answer.problem);
    setPlan(answer.ok ? answer.value.plan : null);
  }
  async function begin(acting: number): Promise<void> {
    const begun = await confirm({
      title: `Backfill ${arc.name}?`,
      says: `${plural(acting, "lot")} from ${bounds.from} to ${bounds.to} are worked on, ${bounds.maxRunning} at a time, after fresh ones. Good lots are left as they are.`,
      verb: "Begin the backfill",
      reason: "needed",
      run: (why) => call("post", PATH, { path, body: { ...bounds, dryRun: false, why } }),
      done: "The backfill has begun.",
    });
    if (begun?.backfill) navigate(backfillPlace(begun.backfill.id));
  }
  const acting = plan ? Object.entries(plan.actions).reduce((sum, [action, number]) => (action === "leave" ? sum : sum + number), 0) : 0;
  return (
    <>
      <form className="body backfill-form" onSubmit={(event) => void preview(event)}>
        <label>
          First lot
          <input className="field mono" required value={bounds.from} onChange={(event) => change({ from: event.target.value })} />
        </label>
        <label>
          Last lot
          <input className="field mono" required value={bounds.to} onChange={(event) => change({ to: event.target.value })} />
        </label>
        <label>
          At once
          <input className="field" type="number" min={1} max={1000} value={bounds.maxRunning} onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })} />
        </label>
        <Button type="submit" kind={plan ? "plain" : "primary"} icon="search">
          Preview
        </Button>
        {plan && (
          <Button kind="primary" icon="play" disabled={acting === 0} onClick={() => void begin(acting)}>
            Begin this backfill
          </Button>
        )}
      </form>
      {problem && <Trouble problem={problem} />}
      {plan && (
        <>
          <p className="body plan-totals">
            {plural(plan.count, "lot")}:
            {Object.entries(plan.actions).map(([action, number]) => (
              <span key={action}>
                <strong className="num">{count(number)}</strong> {action}
              </span>
            ))}
          </p>
          {plan.lines.length > 0 ? (
            <Rows
              of={plan.lines}
              label="what would happen"
              rows={10}
              columns={[
                { title: "lot", cell: (line) => <WorkName job={arc} lot={line.lot} />, width: "minmax(9rem, 1fr)" },
                { title: "now", cell: (line) => <Status of={line.now} />, width: "130px" },
                { title: "then", cell: (line) => line.action, width: "90px" },
                { title: "cause", cell: (line) => <span title={line.cause}>{line.cause}</span>, width: "minmax(8rem, 2fr)", wide: true },
              ]}
            />
          ) : (
            <Empty icon="check" title="Everything is good: there is nothing to do" />
          )}
        </>
      )}
    </>
  );
}
