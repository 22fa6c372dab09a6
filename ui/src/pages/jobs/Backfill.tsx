/** Backfills of an arc: say what, see what would happen, begin, watch, pause and cancel. */
import { type FormEvent, useState } from "react";
import { type AnswerOf, type Ask, call, type Problem, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { confirm } from "../../kit/Confirm";
import { WorkName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { navigate } from "../../router/router";
import { BackfillShare, backfillPlace, SteerBackfill } from "../replay/progress";

const PATH = "/api/v1/namespaces/{namespace}/arcs/{arc}/backfills";
type Body = Ask<"post", typeof PATH>["body"];
type Plan = NonNullable<AnswerOf<"post", typeof PATH>["plan"]>;

export function Backfill({ job }: { job: Schemas["Job"] }) {
  const [body, setBody] = useState<Body>({ all: false, newestFirst: false, maxRunning: 4 });
  const [plan, setPlan] = useState<Plan | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const path = { namespace: job.namespace, arc: job.name };
  const change = (next: Partial<Body>) => {
    setBody({ ...body, ...next });
    setPlan(null);
  };
  async function preview(event: FormEvent): Promise<void> {
    event.preventDefault();
    const answer = await call("post", PATH, { path, body: { ...body, dryRun: true } });
    setProblem(answer.ok ? null : answer.problem);
    setPlan(answer.ok ? answer.value.plan : null);
  }
  async function begin(seen: Plan): Promise<void> {
    const begun = await confirm({
      title: `Backfill ${job.name}?`,
      says: `${plural(actingIn(seen), "lot")} from ${seen.first} to ${seen.last} are worked on, ${body.maxRunning ?? 4} at a time, after fresh ones. ${body.all ? "What was published stays readable until its new version replaces it." : "Good lots are left as they are."}`,
      verb: "Begin the backfill",
      reason: "needed",
      run: (why) => call("post", PATH, { path, body: { ...body, dryRun: false, why } }),
      done: "The backfill has begun.",
    });
    if (begun?.backfill) navigate(backfillPlace(begun.backfill.id));
  }
  return (
    <>
      <Panel title="A backfill runs an arc on lots that are not good">
        <Offered says>
          <form className="body stack" onSubmit={(event) => void preview(event)}>
            <div className="backfill-form">
              <label>
                From
                <input className="field mono" placeholder="the first lot" value={body.from ?? ""} onChange={(event) => change({ from: event.target.value || null })} />
              </label>
              <label>
                To
                <input className="field mono" placeholder="the last lot" value={body.to ?? ""} onChange={(event) => change({ to: event.target.value || null })} />
              </label>
              <label>
                At once
                <input className="field" type="number" min={1} max={1000} value={body.maxRunning ?? 4} onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })} />
              </label>
              <label className="check">
                <input type="checkbox" checked={body.all ?? false} onChange={(event) => change({ all: event.target.checked })} /> also what is good
              </label>
              <label className="check">
                <input type="checkbox" checked={body.newestFirst ?? false} onChange={(event) => change({ newestFirst: event.target.checked })} /> newest first
              </label>
              <Button type="submit" kind="primary" icon="search">
                Preview
              </Button>
            </div>
            <p className="faint">Lots or times, such as 20261115PT1H09 or 2026-11-15. Nothing is done before you have seen what would be.</p>
          </form>
          {problem && <Trouble problem={problem} />}
        </Offered>
      </Panel>
      {plan && <Preview plan={plan} job={job} onBegin={() => void begin(plan)} />}
      <Backfills job={job} />
    </>
  );
}

/** How many lots would be worked on. */
const actingIn = (plan: Plan): number => Object.entries(plan.actions).reduce((sum, [action, lots]) => (action === "leave" ? sum : sum + lots), 0);

function Preview({ plan, job, onBegin }: { plan: Plan; job: Schemas["Job"]; onBegin: () => void }) {
  return (
    <Panel
      title="What would happen"
      aside={
        <Button kind="primary" icon="play" disabled={actingIn(plan) === 0} onClick={onBegin}>
          Begin this backfill
        </Button>
      }
    >
      <div className="body plan-totals">
        <span>
          {plural(plan.count, "lot")} of {plan.interval}, {plan.first} to {plan.last}:
        </span>
        {Object.entries(plan.actions).map(([action, number]) => (
          <span key={action}>
            <strong className="num">{count(number)}</strong> {action}
          </span>
        ))}
      </div>
      {plan.lines.length === 0 ? (
        <Empty icon="check" title="Everything is good: there is nothing to do" />
      ) : (
        <Rows
          of={plan.lines}
          label="what would happen"
          rows={10}
          columns={[
            { title: "lot", cell: (line) => <WorkName job={job.id} lot={line.lot} />, width: "minmax(9rem, 1fr)" },
            { title: "now", cell: (line) => <Status of={line.now} />, width: "130px" },
            { title: "then", cell: (line) => line.action, width: "90px" },
            { title: "cause", cell: (line) => <span title={line.cause}>{line.cause}</span>, width: "minmax(8rem, 2fr)" },
          ]}
        />
      )}
    </Panel>
  );
}

function Backfills({ job }: { job: Schemas["Job"] }) {
  const found = useGet("/api/v1/backfills", { query: { limit: 100 } });
  return (
    <Shown of={found}>
      {(value) => {
        const own = value.backfills.filter((each) => each.namespace === job.namespace && each.arc === job.name);
        return own.length === 0 ? null : (
          <Panel title="Backfills" aside="newest first">
            <Rows
              of={own}
              label="backfills"
              rows={8}
              columns={[
                { title: "state", cell: (each) => <Status of={each.state} />, width: "110px" },
                { title: "lots", cell: (each) => <Link className="name mono" to={backfillPlace(each.id)}>{each.first} … {each.last}</Link>, width: "minmax(10rem, 1.4fr)" },
                { title: "how far", cell: (each) => <BackfillShare of={each} />, width: "minmax(7rem, 1fr)", wide: true },
                { title: "done", cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`, width: "100px", end: true },
                { title: "by", cell: (each) => each.who, width: "90px", wide: true },
                { title: "began", cell: (each) => <Time at={each.createdAt} />, width: "90px", wide: true },
                { title: "", acts: true, cell: (each) => <SteerBackfill backfill={each} />, width: "190px", end: true, wide: true },
              ]}
            />
          </Panel>
        );
      }}
    </Shown>
  );
}
