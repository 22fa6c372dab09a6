/** A replay: its progress, its failures, its steps. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Icon } from "../../kit/Icon";
import { JobLink, RunLink, WorkLink } from "../../kit/links";
import { Pager } from "../../kit/Pager";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { STEP_STATES, type StepState } from "../../kit/states";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, span } from "../../kit/format";
import { workAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { type Replay as Progress, ReplayShare, ReplayActions } from "./progress";

type Step = Schemas["ReplayStep"];
const PART = 500;

const COLUMNS: Column<Step>[] = [
  {
    title: "step",
    cell: (step) => <span className="num">{step.number}</span>,
    width: "50px",
    end: true,
  },
  { title: "state", cell: (step) => <Status of={step.state} />, width: "104px" },
  {
    title: "job",
    cell: (step) => (
      <span style={{ paddingLeft: `${Math.min(step.depth, 8) * 14}px` }}>
        <JobLink of={jobOf(step)} />
      </span>
    ),
    width: "minmax(8rem, 1.2fr)",
  },
  {
    title: "lot",
    cell: (step) => <WorkLink job={jobOf(step)} lot={step.lot} />,
    width: "minmax(8rem, 1fr)",
  },
  {
    title: "took last time",
    cell: (step) => span(step.seconds),
    width: "92px",
    end: true,
    wide: true,
  },
  {
    title: "last run",
    cell: (step) => step.runBefore && <RunLink of={step.runBefore} />,
    width: "118px",
    wide: true,
  },
  {
    title: "run",
    cell: (step) => step.run && <RunLink of={step.run} />,
    width: "118px",
    wide: true,
  },
  {
    title: "note",
    cell: (step) => <span title={step.note}>{step.note}</span>,
    width: "minmax(5rem, 1.4fr)",
    wide: true,
  },
];

const jobOf = (step: Step) => ({ namespace: step.namespace, name: step.job });

export default function Replay({ id = "" }: { id?: string }) {
  const result = useGet("/api/v1/replays/{replay}", { path: { replay: id } });
  return <Async of={result}>{(replay) => <ReplayDetails replay={replay} />}</Async>;
}

function ReplayDetails({ replay }: { replay: Progress }) {
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="replay" size={14} /> Replay of
          </>
        }
        title={replay.target}
        actions={<ReplayActions replay={replay} />}
      >
        <Status of={replay.state} />
        <span>
          started <Time at={replay.createdAt} /> by {replay.who}: {replay.why || "no reason given"}
        </span>
      </PageHead>
      <div className="stack">
        <Panel title="Progress" aside={`${count(replay.done)} of ${plural(replay.steps, "step")}`}>
          <div className="body stack">
            <ReplayShare of={replay} />
            <Facts
              of={[
                ["Done", count(replay.done)],
                ["Running", `${count(replay.going)} of ${count(replay.maxRunning)} at a time`],
                ["Pending", count(replay.pending)],
                ["Failed", count(replay.failed)],
                ["Blocked", count(replay.blocked)],
                ["Duration", span(replay.seconds)],
                [
                  "Work done, from past runs",
                  `${span(replay.doneSeconds)} of ${span(replay.costSeconds)}`,
                ],
                ["State since", <Time at={replay.since} full />],
              ]}
            />
          </div>
        </Panel>
        {replay.state === "running" && replay.going === 0 && replay.pending > 0 && (
          <div className="trouble tone-warn" role="note">
            <Icon name="alert" />
            <p>
              No step is running. Check that a worker runs: <code>penstock arcs start</code>
            </p>
          </div>
        )}
        {replay.failures.length > 0 && (
          <Panel
            title="Failed steps"
            aside="they block the steps after them; retry them, then start another replay"
          >
            <Rows
              of={replay.failures}
              label="failed steps"
              columns={COLUMNS}
              rows={8}
              to={(step) => workAddress(jobOf(step), step.lot)}
            />
          </Panel>
        )}
        <Steps replay={replay} />
      </div>
    </>
  );
}

function Steps({ replay }: { replay: Progress }) {
  const [query, setQuery] = useSearchParams();
  const state = query.get("state") as StepState | null;
  const first = Math.max(1, Number(query.get("first") ?? 1) || 1);
  const result = useGet(
    "/api/v1/replays/{replay}/steps",
    { path: { replay: replay.id }, query: { first, limit: PART, ...(state ? { state } : {}) } },
    { keep: true },
  );
  return (
    <Panel
      title="Steps"
      aside={
        <select
          className="field"
          aria-label="state of the steps"
          value={state ?? ""}
          onChange={(event) => setQuery({ state: event.target.value, first: null })}
        >
          <option value="">any state</option>
          {STEP_STATES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      }
    >
      <Async of={result}>
        {({ steps }) =>
          steps.length === 0 ? (
            <EmptyState
              icon="check"
              title={state ? `No step is ${state}` : "No steps: nothing was made from the bad data"}
            />
          ) : (
            <>
              <Rows
                of={steps}
                label="steps"
                columns={COLUMNS}
                to={(step) => workAddress(jobOf(step), step.lot)}
              />
              <Pager
                first="First"
                next="Next"
                onFirst={first > 1 ? () => setQuery({ first: null }) : null}
                onNext={
                  steps.length < PART
                    ? null
                    : () => setQuery({ first: (steps.at(-1)?.number ?? 0) + 1 }, { push: true })
                }
              />
            </>
          )
        }
      </Async>
    </Panel>
  );
}
