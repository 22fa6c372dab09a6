/** A backfill of an arc: what it would do is seen first, then it is begun. */
import { type FormEvent, useState } from "react";
import { type AnswerOf, type Ask, call, type Problem } from "../api/client";
import { Button } from "../kit/Button";
import { confirm } from "../kit/Confirm";
import { WorkName } from "../kit/Names";
import { Empty } from "../kit/Shown";
import { Status } from "../kit/Status";
import { Rows } from "../kit/Table";
import { count, plural } from "../kit/words";
import { navigate } from "../router/router";
import { backfillPlace, lotsOf } from "../pages/replay/progress";

const PATH = "/api/v1/namespaces/{namespace}/arcs/{arc}/backfills";
type Body = Ask<"post", typeof PATH>["body"];
export type Plan = NonNullable<AnswerOf<"post", typeof PATH>["plan"]>;

interface Named {
  readonly namespace: string;
  readonly name: string;
}

interface Seen {
  readonly of: Body;
  readonly plan: Plan | null;
  readonly problem: Problem | null;
}

export function useBackfill({ namespace, name }: Named, first: Body) {
  const [body, setBody] = useState<Body>(first);
  const [seen, setSeen] = useState<Seen | null>(null);
  const path = { namespace, arc: name };
  // An answer that comes late is of what was asked for before, and not of what would be begun.
  const { plan, problem } = seen?.of === body ? seen : { plan: null, problem: null };
  async function preview(event: FormEvent): Promise<void> {
    event.preventDefault();
    const answer = await call("post", PATH, { path, body: { ...body, dryRun: true } });
    setSeen(answer.ok ? { of: body, plan: answer.value.plan, problem: null } : { of: body, plan: null, problem: answer.problem });
  }
  async function begin(seenPlan: Plan): Promise<void> {
    const begun = await confirm({
      title: `Backfill ${name}?`,
      says: `${plural(actingIn(seenPlan), "lot")} ${seenPlan.interval === null ? `of the list (${lotsOf(seenPlan)})` : `from ${seenPlan.first} to ${seenPlan.last}`} are worked on, ${body.maxRunning ?? 4} at a time, after fresh ones. ${body.all ? "What was published stays readable until its new version replaces it." : "Good lots are left as they are."}`,
      verb: "Begin the backfill",
      reason: "needed",
      run: (why) => call("post", PATH, { path, body: { ...body, dryRun: false, why } }),
      done: "The backfill has begun.",
    });
    if (begun?.backfill) navigate(backfillPlace(begun.backfill.id));
  }
  return { body, change: (next: Partial<Body>) => setBody({ ...body, ...next }), plan, problem, preview, begin };
}

/** How many lots would be worked on. */
const actingIn = (plan: Plan): number => Object.entries(plan.actions).reduce((sum, [action, lots]) => (action === "leave" ? sum : sum + lots), 0);

export function BeginBackfill({ plan, begin }: { plan: Plan; begin: (plan: Plan) => Promise<void> }) {
  return (
    <Button kind="primary" icon="play" disabled={actingIn(plan) === 0} onClick={() => void begin(plan)}>
      Begin this backfill
    </Button>
  );
}

/** What would be done, lot by lot. */
export function Planned({ plan, arc }: { plan: Plan; arc: Named }) {
  return (
    <>
      <div className="body plan-totals">
        <span>
          {plan.interval === null ? `${plural(plan.count, "lot")}, ${lotsOf(plan)}:` : `${plural(plan.count, "lot")} of ${plan.interval}, ${plan.first} to ${plan.last}:`}
        </span>
        {Object.entries(plan.actions).map(([action, number]) => (
          <span key={action}>
            <strong className="num">{count(number)}</strong> {action}
          </span>
        ))}
      </div>
      {plan.isCut && <p className="body faint">There are more lots than are shown here.</p>}
      {plan.lines.length === 0 ? (
        <Empty icon="check" title="Everything is good: there is nothing to do" />
      ) : (
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
      )}
    </>
  );
}
