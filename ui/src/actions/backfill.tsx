/** A backfill of an arc: a preview of its plan, then its start. */
import { type FormEvent, useState } from "react";
import { type AnswerOf, type Ask, call, type EntityId, type Problem } from "../api/client";
import { Button } from "../kit/Button";
import { confirm } from "../kit/Confirm";
import { WorkLink } from "../kit/links";
import { EmptyState } from "../kit/Async";
import { Status } from "../kit/Status";
import { Rows } from "../kit/Table";
import { count, plural } from "../kit/format";
import { navigate } from "../router/router";
import { backfillAddress, lotsOf } from "../pages/replay/progress";

const PATH = "/api/v1/namespaces/{namespace}/arcs/{arc}/backfills";
type Body = Ask<"post", typeof PATH>["body"];
export type Plan = NonNullable<AnswerOf<"post", typeof PATH>["plan"]>;

interface Preview {
  readonly of: Body;
  readonly plan: Plan | null;
  readonly problem: Problem | null;
}

export function useBackfill({ namespace, name }: EntityId, first: Body) {
  const [body, setBody] = useState<Body>(first);
  const [shown, setShown] = useState<Preview | null>(null);
  const path = { namespace, arc: name };
  // A late answer may be the plan of former input.
  const { plan, problem } = shown?.of === body ? shown : { plan: null, problem: null };
  async function preview(event: FormEvent): Promise<void> {
    event.preventDefault();
    const answer = await call("post", PATH, { path, body: { ...body, dryRun: true } });
    setShown(
      answer.ok
        ? { of: body, plan: answer.value.plan, problem: null }
        : { of: body, plan: null, problem: answer.problem },
    );
  }
  async function start(current: Plan): Promise<void> {
    const started = await confirm({
      title: `Start a backfill of ${name}?`,
      description: `The arc works on ${plural(actingIn(current), "lot")} ${current.interval === null ? `of the list (${lotsOf(current)})` : `from ${current.first} to ${current.last}`}, ${body.maxRunning ?? 4} at a time, after new lots. ${body.all ? "Published versions stay readable until new ones replace them." : "Good lots are not changed."}`,
      verb: "Start backfill",

      send: (why) => call("post", PATH, { path, body: { ...body, dryRun: false, why } }),
      done: "The backfill has started.",
    });
    if (started?.backfill) navigate(backfillAddress(started.backfill.id));
  }
  return {
    body,
    change: (next: Partial<Body>) => setBody({ ...body, ...next }),
    plan,
    problem,
    preview,
    start,
  };
}

/** Count the lots that a plan works on. */
const actingIn = (plan: Plan): number =>
  Object.entries(plan.actions).reduce(
    (sum, [action, lots]) => (action === "leave" ? sum : sum + lots),
    0,
  );

export function StartBackfillButton({
  plan,
  start,
}: {
  plan: Plan;
  start: (plan: Plan) => Promise<void>;
}) {
  return (
    <Button
      kind="primary"
      icon="play"
      disabled={actingIn(plan) === 0}
      onClick={() => void start(plan)}
    >
      Start backfill
    </Button>
  );
}

/** The plan, lot by lot. */
export function BackfillPlan({ plan, arc }: { plan: Plan; arc: EntityId }) {
  return (
    <>
      <div className="body plan-totals">
        <span>
          {plan.interval === null
            ? `${plural(plan.count, "lot")}, ${lotsOf(plan)}:`
            : `${plural(plan.count, "lot")} of ${plan.interval}, ${plan.first} to ${plan.last}:`}
        </span>
        {Object.entries(plan.actions).map(([action, number]) => (
          <span key={action}>
            <strong className="num">{count(number)}</strong> {action}
          </span>
        ))}
      </div>
      {plan.isCut && <p className="body faint">The plan has more lots than this list.</p>}
      {plan.lines.length === 0 ? (
        <EmptyState icon="check" title="All lots are good: nothing to do" />
      ) : (
        <Rows
          of={plan.lines}
          label="plan of the backfill"
          rows={10}
          columns={[
            {
              title: "lot",
              cell: (line) => <WorkLink job={arc} lot={line.lot} />,
              width: "minmax(9rem, 1fr)",
            },
            { title: "now", cell: (line) => <Status of={line.now} />, width: "130px" },
            { title: "then", cell: (line) => line.action, width: "90px" },
            {
              title: "cause",
              cell: (line) => <span title={line.cause}>{line.cause}</span>,
              width: "minmax(8rem, 2fr)",
              wide: true,
            },
          ]}
        />
      )}
    </>
  );
}
