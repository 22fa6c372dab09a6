/** Why a job does not work on a lot, as a chain down to the root cause. */
import { ReleaseHold, RetryLot, UnholdLot } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Copy } from "../../kit/Copy";
import { JobName, WorkName } from "../../kit/Names";
import { Panel } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";

type Why = Schemas["Why"];

export function WhyPanel({ namespace, job, lot }: { namespace: string; job: string; lot: string }) {
  const why = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", { path: { namespace, job, lot } });
  return (
    <Panel title="Why">
      <div className="body">
        <Shown of={why}>
          {(value) => (
            <>
              <Roots of={value} />
              <ul className="why-chain">
                <Link why={value} />
              </ul>
            </>
          )}
        </Shown>
      </div>
    </Panel>
  );
}

/** What ends each root cause: a button where the page has one, and the command. */
function Roots({ of: why }: { of: Why }) {
  const ends = new Map((why.roots ?? []).flatMap((root) => root.reasons.flatMap((reason) => (reason.command ? [[reason.command, { root, reason }] as const] : []))));
  if (ends.size === 0) return null;
  return (
    <div className="why-roots">
      <p>{ends.size === 1 ? "This ends the cause:" : `There are ${ends.size} causes to end:`}</p>
      <ul>
        {[...ends].map(([command, { root, reason }]) => (
          <li key={command} className="row">
            <End root={root} reason={reason} />
            <code>{command}</code>
            <Copy text={command} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function End({ root, reason }: { root: Schemas["RootCause"]; reason: Schemas["Reason"] }) {
  const { namespace, job, lot } = root;
  const held = { namespace: reason.namespace ?? namespace, name: reason.name ?? job, source: null };
  if (reason.kind === "out_of_tries") return <RetryLot namespace={namespace} job={job} lot={lot} />;
  if (reason.kind === "held_lot") return <UnholdLot namespace={namespace} job={job} lot={lot} />;
  if (reason.kind === "held_job") return <ReleaseHold hold={{ ...held, kind: "JOB" }} />;
  if (reason.kind === "held_dataset") return <ReleaseHold hold={{ ...held, kind: "DATASET" }} />;
  return null;
}

function Link({ why }: { why: Why }) {
  const reasons = why.reasons.length ? why.reasons.map((reason) => reason.sentence) : [why.sentence];
  return (
    <li>
      <div className="row">
        <Status of={why.state} label={why.runnable ? "nothing stops it" : why.state ? why.state.toLowerCase() : "has not come yet"} />
        <JobName of={{ namespace: why.namespace, name: why.job }} />
        <span className="faint">on</span>
        <WorkName job={{ namespace: why.namespace, name: why.job }} lot={why.lot} />
      </div>
      {reasons.map((sentence) => (
        <p key={sentence} className="muted">
          {sentence}
        </p>
      ))}
      {why.followed === false && <p className="muted">What it waits for is told with the same job elsewhere here, or on the page of its lot.</p>}
      {why.causes.length > 0 && (
        <ul className="why-chain">
          {why.causes.map((cause) => (
            <Link key={`${cause.namespace}/${cause.job}/${cause.lot}`} why={cause} />
          ))}
        </ul>
      )}
    </li>
  );
}
