/** Says what was bad, shows what would be made again, and begins it. */
import { call, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { confirm } from "../../kit/Confirm";
import { JobName, RunName, WorkName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Pick } from "../../kit/Pick";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Shown, Waiting } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Tree } from "../../kit/Tree";
import { count, plural, span } from "../../kit/words";
import { navigate, useQuery } from "../../router/router";
import { replayPlace } from "./progress";
import { type Kind, kindOf, type Target, targetOf } from "./targets";
import { newId, treeOf } from "./steps";

type Plan = Schemas["ReplayPlan"];
const KINDS: readonly (readonly [Kind, string])[] = [
  ["lot", "A lot of a dataset"],
  ["job", "What a job made"],
  ["batch", "A batch"],
];

export default function NewReplay() {
  const [query, setQuery] = useQuery();
  const kind = kindOf(query);
  const target = targetOf(query);
  return (
    <>
      <PageHead title="A new replay">
        <span>All that was made from what is bad is made again, in order. Nothing is done before you have seen what would be.</span>
      </PageHead>
      <div className="filters">
        <label className="row">
          What is bad
          <select className="field" value={kind} onChange={(event) => setQuery({ of: event.target.value, dataset: null, job: null, batch: null, lot: null, from: null, to: null })}>
            {KINDS.map(([id, label]) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={query.get("only") !== null} onChange={(event) => setQuery({ only: event.target.checked })} /> leave what is bad itself, only what follows
        </label>
        {kind === "batch" && <SearchField label="Batch, such as bid0000000001" name="batch" />}
      </div>
      {kind !== "batch" && (
        <Pick
          key={kind}
          kind={kind === "job" ? "job" : "dataset"}
          fields={[
            { name: "lot", label: "Lot", hint: "20261115PT1H09" },
            { name: "from", label: "or published from (UTC)", hint: "2026-11-15 09:00" },
            { name: "to", label: "until (UTC)", hint: "2026-11-16" },
          ]}
          verb="Preview"
        />
      )}
      {target ? <Preview target={target} /> : <Empty icon="replay" title="Say what was bad">A lot of a dataset, what a job made in some time, or a batch. The preview follows.</Empty>}
    </>
  );
}

function Preview({ target }: { target: Target }) {
  const plan = useGet("/api/v1/replays/plan", { query: target });
  if (plan.isReading && !plan.value) return <Waiting />;
  return <Shown of={plan}>{(value) => <Planned plan={value} target={target} />}</Shown>;
}

function Planned({ plan, target }: { plan: Plan; target: Target }) {
  const { totals } = plan;
  const acting = (totals.actions["rerun"] ?? 0) + (totals.actions["follow"] ?? 0);
  async function begin(): Promise<void> {
    // It has its id before: said twice, it is begun once.
    const id = newId();
    const begun = await confirm({
      title: `Replay ${plan.target}?`,
      says: `${plural(acting, "step")} of ${plural(totals.jobs.length, "job")} are done again, ${totals.atOnce} at a time, each when those before it are done. It takes about ${span(totals.wallSeconds)}, by past runs. What was published stays readable until its new version replaces it.`,
      verb: "Begin the replay",
      reason: "needed",
      run: (why) => call("put", "/api/v1/replays/{replay}", { path: { replay: id }, body: { ...target, why } }),
      done: "The replay has begun.",
    });
    if (begun) navigate(replayPlace(begun.id));
  }
  if (plan.steps.length === 0) {
    return (
      <Empty icon="check" title="Nothing was made from that">
        No lot of a job stands on {plan.target}, so there is nothing to make again.
      </Empty>
    );
  }
  const tree = treeOf(plan.steps);
  return (
    <div className="stack">
      <Panel
        title={`Replay of ${plan.target}`}
        aside={
          <Offered says>
            <Button kind="primary" icon="replay" disabled={acting === 0} onClick={() => void begin()}>
              Begin this replay
            </Button>
          </Offered>
        }
      >
        <div className="body">
          <Facts
            of={[
              ["Steps", count(totals.steps)],
              ...Object.entries(totals.actions).map(([action, number]) => [SAID[action] ?? action, count(number)] as const),
              ["Work, by past runs", span(totals.costSeconds)],
              ["The longest way", span(totals.criticalPathSeconds)],
              [`With ${totals.atOnce} at a time`, `about ${span(totals.wallSeconds)}`],
            ]}
          />
        </div>
      </Panel>
      <Panel title="What would be made again" aside="each step below the last that it waits for">
        <Tree label="steps of the replay" roots={tree.roots} below={tree.below} open={plan.steps.length > 300 ? 1 : 8} line={(key) => <StepLine step={plan.steps[Number(key) - 1]} />} />
      </Panel>
      <Panel title="By job" aside={plural(totals.jobs.length, "job")}>
        <Rows
          of={totals.jobs}
          label="jobs of the replay"
          rows={10}
          columns={[
            { title: "job", cell: (each) => <JobName of={{ namespace: each.namespace, name: each.job }} whole />, width: "minmax(9rem, 2fr)" },
            { title: "steps", cell: (each) => count(each.steps), width: "80px", end: true },
            { title: "took", cell: (each) => span(each.seconds), width: "110px", end: true },
          ]}
        />
      </Panel>
    </div>
  );
}

const SAID: Readonly<Record<string, string>> = { rerun: "Done again", follow: "Done anyway", leave: "Left, for they are held", blocked: "Left, for what is before them" };

function StepLine({ step }: { step: Plan["steps"][number] | undefined }) {
  if (!step) return null;
  const job = { namespace: step.namespace, name: step.job };
  return (
    <>
      <Status of={step.action} />
      <JobName of={job} />
      <span className="faint">on</span>
      <WorkName job={job} lot={step.lot} />
      <span className="faint num">{span(step.seconds)}</span>
      {step.run && (
        <span className="faint">
          last made by <RunName of={step.run} />
        </span>
      )}
      {step.note && <span className="muted">{step.note}</span>}
    </>
  );
}
