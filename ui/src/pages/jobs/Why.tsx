/** Why a job does not work on a lot: a chain from the reason down to the root causes. */
import { EndHold, RetryButton, ReleaseWorkButton } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { CopyButton } from "../../kit/CopyButton";
import { JobLink, WorkLink } from "../../kit/links";
import { Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Status } from "../../kit/Status";

type Why = Schemas["Why"];

export function WhyPanel({ namespace, job, lot }: { namespace: string; job: string; lot: string }) {
  const why = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", {
    path: { namespace, job, lot },
  });
  return (
    <Panel title="Why">
      <div className="body">
        <Async of={why}>
          {(value) => (
            <>
              <RootCauses of={value} />
              <ul className="why-chain">
                <WhyStep why={value} />
              </ul>
            </>
          )}
        </Async>
      </div>
    </Panel>
  );
}

/** The remedy of each root cause: a button where there is one, and the command. */
function RootCauses({ of: why }: { of: Why }) {
  const ends = new Map(
    (why.roots ?? []).flatMap((root) =>
      root.reasons.flatMap((reason) =>
        reason.command ? [[reason.command, { root, reason }] as const] : [],
      ),
    ),
  );
  if (ends.size === 0) return null;
  return (
    <div className="why-roots">
      <p>{ends.size === 1 ? "To remove the cause:" : `To remove the ${ends.size} causes:`}</p>
      <ul>
        {[...ends].map(([command, { root, reason }]) => (
          <li key={command} className="row">
            <RootCauseAction root={root} reason={reason} />
            <code>{command}</code>
            <CopyButton text={command} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function RootCauseAction({
  root,
  reason,
}: {
  root: Schemas["RootCause"];
  reason: Schemas["Reason"];
}) {
  const { namespace, job, lot } = root;
  const held = { namespace: reason.namespace ?? namespace, name: reason.name ?? job, source: null };
  if (reason.kind === "out_of_tries")
    return <RetryButton namespace={namespace} job={job} lot={lot} />;
  if (reason.kind === "held_lot")
    return <ReleaseWorkButton namespace={namespace} job={job} lot={lot} />;
  if (reason.kind === "held_job") return <EndHold hold={{ ...held, kind: "JOB" }} />;
  if (reason.kind === "held_dataset") return <EndHold hold={{ ...held, kind: "DATASET" }} />;
  return null;
}

function WhyStep({ why }: { why: Why }) {
  const reasons = why.reasons.length
    ? why.reasons.map((reason) => reason.sentence)
    : [why.sentence];
  return (
    <li>
      <div className="row">
        <Status
          of={why.state}
          label={
            why.runnable
              ? "ready to run"
              : why.state
                ? why.state.toLowerCase()
                : "not registered yet"
          }
        />
        <JobLink of={{ namespace: why.namespace, name: why.job }} />
        <span className="faint">on</span>
        <WorkLink job={{ namespace: why.namespace, name: why.job }} lot={why.lot} />
      </div>
      {reasons.map((sentence) => (
        <p key={sentence} className="muted">
          {sentence}
        </p>
      ))}
      {why.followed === false && (
        <p className="muted">
          Its own reasons are shown with the same job above, or on the page of its lot.
        </p>
      )}
      {why.causes.length > 0 && (
        <ul className="why-chain">
          {why.causes.map((cause) => (
            <WhyStep key={`${cause.namespace}/${cause.job}/${cause.lot}`} why={cause} />
          ))}
        </ul>
      )}
    </li>
  );
}
