/** Backfills of an arc: say what, see what would happen, begin, watch, pause and cancel. */
import { type FormEvent, useState } from "react";
import { type AnswerOf, type Ask, call, type Problem, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Act, perform } from "../../kit/Act";
import { Share } from "../../kit/Bars";
import { Button } from "../../kit/Button";
import { WorkName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";

const PATH = "/api/v1/namespaces/{namespace}/arcs/{arc}/backfills";
type Body = Ask<"post", typeof PATH>["body"];
type Plan = NonNullable<AnswerOf<"post", typeof PATH>["plan"]>;
type Running = AnswerOf<"get", "/api/v1/backfills">["backfills"][number];

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
  async function begin(): Promise<void> {
    const begun = await perform(
      () => call("post", PATH, { path, body: { ...body, dryRun: false } }),
      "The backfill has begun.",
    );
    if (begun) setPlan(null);
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
      {plan && <Preview plan={plan} job={job} onBegin={() => void begin()} />}
      <Backfills job={job} />
    </>
  );
}

function Preview({ plan, job, onBegin }: { plan: Plan; job: Schemas["Job"]; onBegin: () => void }) {
  const acting = Object.entries(plan.actions).filter(([action]) => action !== "leave");
  return (
    <Panel
      title="What would happen"
      aside={
        <Button kind="primary" icon="play" disabled={acting.length === 0} onClick={onBegin}>
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
                { title: "lots", cell: (each) => <span className="mono">{each.first} … {each.last}</span>, width: "minmax(10rem, 1.4fr)", wide: true },
                { title: "how far", cell: (each) => <Progress of={each} />, width: "minmax(7rem, 1fr)" },
                { title: "done", cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`, width: "100px", end: true },
                { title: "by", cell: (each) => each.who, width: "90px", wide: true },
                { title: "began", cell: (each) => <Time at={each.createdAt} />, width: "90px", wide: true },
                { title: "", acts: true, cell: (each) => <Steer backfill={each} />, width: "190px", end: true },
              ]}
            />
          </Panel>
        );
      }}
    </Shown>
  );
}

function Progress({ of: each }: { of: Running }) {
  return (
    <Share
      of={each.count}
      parts={[
        { tone: "good", word: "done or good", value: each.done + each.good },
        { tone: "active", word: "going", value: each.going },
        { tone: "bad", word: "failed", value: each.failed },
        { tone: "held", word: "held", value: each.held },
        { tone: "idle", word: "waiting", value: each.waiting },
      ]}
    />
  );
}

function Steer({ backfill }: { backfill: Running }) {
  const path = { backfill: backfill.id };
  if (backfill.state !== "running" && backfill.state !== "paused") return null;
  return (
    <span className="row">
      {backfill.state === "running" ? (
        <Act icon="pause" ask={{ title: "Pause this backfill?", says: "No more lots are set going until it is resumed. What was set going goes on.", verb: "Pause the backfill", reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/pause", { path, body: { why } })} done="The backfill is paused.">
          Pause
        </Act>
      ) : (
        <Act icon="play" ask={{ title: "Resume this backfill?", says: "Lots are set going again where it stopped.", verb: "Resume the backfill", reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/resume", { path, body: { why } })} done="The backfill goes on.">
          Resume
        </Act>
      )}
      <Act kind="danger" ask={{ title: "Cancel this backfill?", says: "No more lots are set going, for good. What was set going ends by itself.", verb: "Cancel the backfill", danger: true, reason: "needed" }} run={(why) => call("post", "/api/v1/backfills/{backfill}/cancel", { path, body: { why } })} done="The backfill is cancelled.">
        Cancel
      </Act>
    </span>
  );
}
