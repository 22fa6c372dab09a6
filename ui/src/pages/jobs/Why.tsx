/** Why a job does not work on a lot, as a chain down to the root cause. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
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
            <ul className="why-chain">
              <Link why={value} />
            </ul>
          )}
        </Shown>
      </div>
    </Panel>
  );
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
