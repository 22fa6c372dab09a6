/** One replay as it goes: how far it is, what goes now, what failed, all its steps. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Icon } from "../../kit/Icon";
import { JobName, RunName, WorkName } from "../../kit/Names";
import { Pager } from "../../kit/Pager";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, span } from "../../kit/words";
import { workPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import { type Replay as Progress, ReplayShare, SteerReplay } from "./progress";

type Step = Schemas["StepShown"];
const STATES = ["pending", "going", "done", "failed", "blocked"] as const;
const PART = 500;

const COLUMNS: Column<Step>[] = [
  { title: "step", cell: (step) => <span className="num">{step.number}</span>, width: "50px", end: true },
  { title: "state", cell: (step) => <Status of={step.state} />, width: "104px" },
  { title: "job", cell: (step) => <span style={{ paddingLeft: `${Math.min(step.depth, 8) * 14}px` }}><JobName of={jobOf(step)} /></span>, width: "minmax(8rem, 1.2fr)" },
  { title: "lot", cell: (step) => <WorkName job={jobOf(step)} lot={step.lot} />, width: "minmax(8rem, 1fr)" },
  { title: "took before", cell: (step) => span(step.seconds), width: "92px", end: true, wide: true },
  { title: "run before", cell: (step) => step.runBefore && <RunName of={step.runBefore} />, width: "118px", wide: true },
  { title: "run", cell: (step) => step.run && <RunName of={step.run} />, width: "118px", wide: true },
  { title: "note", cell: (step) => <span title={step.note}>{step.note}</span>, width: "minmax(5rem, 1.4fr)", wide: true },
];

const jobOf = (step: Step) => ({ namespace: step.namespace, name: step.job });

export default function Replay({ id = "" }: { id?: string }) {
  const found = useGet("/api/v1/replays/{replay}", { path: { replay: id } });
  return <Shown of={found}>{(replay) => <Whole replay={replay} />}</Shown>;
}

function Whole({ replay }: { replay: Progress }) {
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="replay" size={14} /> Replay of
          </>
        }
        title={replay.target}
        actions={<SteerReplay replay={replay} />}
      >
        <Status of={replay.state} />
        <span>
          begun <Time at={replay.createdAt} /> by {replay.who}: {replay.why || "no reason given"}
        </span>
      </PageHead>
      <div className="stack">
        <Panel title="How far it is" aside={`${count(replay.done)} of ${plural(replay.steps, "step")}`}>
          <div className="body stack">
            <ReplayShare of={replay} />
            <Facts
              of={[
                ["Done", count(replay.done)],
                ["Going", `${count(replay.going)} of ${count(replay.maxRunning)} at a time`],
                ["Pending", count(replay.pending)],
                ["Failed", count(replay.failed)],
                ["Blocked", count(replay.blocked)],
                ["Has run", span(replay.seconds)],
                ["Done again, by past runs", `${span(replay.doneSeconds)} of ${span(replay.costSeconds)}`],
                ["In this state since", <Time at={replay.since} full />],
              ]}
            />
          </div>
        </Panel>
        {replay.state === "running" && replay.going === 0 && replay.pending > 0 && (
          <div className="trouble tone-warn" role="note">
            <Icon name="alert" />
            <p>Nothing goes now. Steps are set going by engines: is one running? penstock arcs start</p>
          </div>
        )}
        {replay.failures.length > 0 && (
          <Panel title="What failed" aside="what stands on it is blocked; run it again, then replay anew">
            <Rows of={replay.failures} label="failed steps" columns={COLUMNS} rows={8} to={(step) => workPlace(jobOf(step), step.lot)} />
          </Panel>
        )}
        <Steps replay={replay} />
      </div>
    </>
  );
}

function Steps({ replay }: { replay: Progress }) {
  const [query, setQuery] = useQuery();
  const state = query.get("state") as (typeof STATES)[number] | null;
  const first = Math.max(1, Number(query.get("first") ?? 1) || 1);
  const found = useGet("/api/v1/replays/{replay}/steps", { path: { replay: replay.id }, query: { first, limit: PART, ...(state ? { state } : {}) } }, { keep: true });
  return (
    <Panel
      title="Steps"
      aside={
        <select className="field" aria-label="state of the steps" value={state ?? ""} onChange={(event) => setQuery({ state: event.target.value, first: null })}>
          <option value="">every state</option>
          {STATES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      }
    >
      <Shown of={found}>
        {({ steps }) =>
          steps.length === 0 ? (
            <Empty icon="check" title={state ? `No step is ${state}` : "It has no steps: nothing stood on that"} />
          ) : (
            <>
              <Rows of={steps} label="steps" columns={COLUMNS} to={(step) => workPlace(jobOf(step), step.lot)} />
              <Pager first="First" next="Next" onFirst={first > 1 ? () => setQuery({ first: null }) : null} onNext={steps.length < PART ? null : () => setQuery({ first: (steps.at(-1)?.number ?? 0) + 1 }, { push: true })} />
            </>
          )
        }
      </Shown>
    </Panel>
  );
}
