/** The form for a new replay: the bad data, a preview of the plan, and the start. */
import { call, type Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Button } from "../../kit/Button";
import { confirm } from "../../kit/Confirm";
import { JobLink, RunLink, WorkLink } from "../../kit/links";
import { IfAllowed } from "../../kit/IfAllowed";
import { TargetPicker } from "../../kit/TargetPicker";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, Async, Loading } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Tree } from "../../kit/Tree";
import { count, plural, span } from "../../kit/format";
import { navigate, useSearchParams } from "../../router/router";
import { replayAddress } from "./progress";
import { type Kind, kindOf, type Target, targetOf } from "./targets";
import { newId, treeOf } from "./steps";

type Plan = Schemas["ReplayPlan"];
const KINDS: readonly (readonly [Kind, string])[] = [
  ["lot", "A lot of a dataset"],
  ["job", "The outputs of a job"],
  ["batch", "A batch"],
];

export default function NewReplay() {
  const [query, setQuery] = useSearchParams();
  const kind = kindOf(query);
  const target = targetOf(query);
  return (
    <>
      <PageHead title="New replay">
        <span>
          A replay makes everything that was made from bad data again, in order. The preview changes
          nothing.
        </span>
      </PageHead>
      <div className="filters">
        <label className="row">
          Bad data
          <select
            className="field"
            value={kind}
            onChange={(event) =>
              setQuery({
                of: event.target.value,
                dataset: null,
                job: null,
                batch: null,
                lot: null,
                from: null,
                to: null,
              })
            }
          >
            {KINDS.map(([id, label]) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={query.get("only") !== null}
            onChange={(event) => setQuery({ only: event.target.checked })}
          />{" "}
          only what was made from it
        </label>
        {kind === "batch" && <SearchField label="Batch, such as bid0000000001" name="batch" />}
      </div>
      {kind !== "batch" && (
        <TargetPicker
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
      {target ? (
        <Preview target={target} />
      ) : (
        <EmptyState icon="replay" title="Choose the bad data">
          Choose a lot of a dataset, the outputs of a job in a time range, or a batch. The preview
          follows.
        </EmptyState>
      )}
    </>
  );
}

function Preview({ target }: { target: Target }) {
  const plan = useGet("/api/v1/replays/plan", { query: target });
  if (plan.isFetching && !plan.data) return <Loading />;
  return <Async of={plan}>{(value) => <ReplayPlan plan={value} target={target} />}</Async>;
}

function ReplayPlan({ plan, target }: { plan: Plan; target: Target }) {
  const { totals } = plan;
  const acting = (totals.actions["rerun"] ?? 0) + (totals.actions["follow"] ?? 0);
  async function start(): Promise<void> {
    // The page chooses the id, so a repeated request starts one replay.
    const id = newId();
    const started = await confirm({
      title: `Replay ${plan.target}?`,
      description: `${plural(acting, "step")} of ${plural(totals.jobs.length, "job")} run again, ${totals.atOnce} at a time, each after its inputs. Past runs suggest about ${span(totals.wallSeconds)}. Published versions stay readable until new ones replace them.`,
      verb: "Start replay",

      send: (why) =>
        call("put", "/api/v1/replays/{replay}", { path: { replay: id }, body: { ...target, why } }),
      done: "The replay has started.",
    });
    if (started) navigate(replayAddress(started.id));
  }
  if (plan.steps.length === 0) {
    return (
      <EmptyState icon="check" title="Nothing to replay">
        No lot was made from {plan.target}.
      </EmptyState>
    );
  }
  const tree = treeOf(plan.steps);
  return (
    <div className="stack">
      <Panel
        title={`Replay of ${plan.target}`}
        aside={
          <IfAllowed hasNote>
            <Button
              kind="primary"
              icon="replay"
              disabled={acting === 0}
              onClick={() => void start()}
            >
              Start replay
            </Button>
          </IfAllowed>
        }
      >
        <div className="body">
          <Facts
            of={[
              ["Steps", count(totals.steps)],
              ...Object.entries(totals.actions).map(
                ([action, number]) => [ACTION_LABELS[action] ?? action, count(number)] as const,
              ),
              ["Work, from past runs", span(totals.costSeconds)],
              ["Critical path", span(totals.criticalPathSeconds)],
              [`With ${totals.atOnce} at a time`, `about ${span(totals.wallSeconds)}`],
            ]}
          />
        </div>
      </Panel>
      <Panel title="Steps" aside="each step is below the last one that it waits for">
        <Tree
          label="steps of the replay"
          roots={tree.roots}
          below={tree.below}
          open={plan.steps.length > 300 ? 1 : 8}
          line={(key) => <StepLine step={plan.steps[Number(key) - 1]} />}
        />
      </Panel>
      <Panel title="Jobs" aside={plural(totals.jobs.length, "job")}>
        <Rows
          of={totals.jobs}
          label="jobs of the replay"
          rows={10}
          columns={[
            {
              title: "job",
              cell: (each) => <JobLink of={{ namespace: each.namespace, name: each.job }} whole />,
              width: "minmax(9rem, 2fr)",
            },
            { title: "steps", cell: (each) => count(each.steps), width: "80px", end: true },
            { title: "took", cell: (each) => span(each.seconds), width: "110px", end: true },
          ]}
        />
      </Panel>
    </div>
  );
}

const ACTION_LABELS: Readonly<Record<string, string>> = {
  rerun: "To run again",
  follow: "Run anyway",
  leave: "Skipped: on hold",
  blocked: "Skipped: inputs on hold",
};

function StepLine({ step }: { step: Plan["steps"][number] | undefined }) {
  if (!step) return null;
  const job = { namespace: step.namespace, name: step.job };
  return (
    <>
      <Status of={step.action} />
      <JobLink of={job} />
      <span className="faint">on</span>
      <WorkLink job={job} lot={step.lot} />
      <span className="faint num">{span(step.seconds)}</span>
      {step.run && (
        <span className="faint">
          last made by <RunLink of={step.run} />
        </span>
      )}
      {step.note && <span className="muted">{step.note}</span>}
    </>
  );
}
