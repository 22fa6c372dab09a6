/** The actions on a job's work on a lot, and on whole jobs and datasets, wherever they are shown. */
import { call, type EntityId, type Schemas } from "../api/client";
import { ActionButton } from "../kit/ActionButton";
import { ReleaseLotButton } from "./lots";

interface WorkPath {
  namespace: string;
  job: string;
  lot: string;
}

interface HeldWork extends WorkPath {
  isOutOfTries?: boolean;
}

const WORK = "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}";
const JOB = "/api/v1/namespaces/{namespace}/jobs/{job}";
const DATASET = "/api/v1/namespaces/{namespace}/datasets/{dataset}";

/** Run failed work again at once, with all its tries. */
export function RetryButton(path: WorkPath) {
  const { job, lot } = path;
  return (
    <ActionButton
      icon="replay"
      title={`Retry ${job} on ${lot}?`}
      description="The job works on the lot again, with all its tries. A published version stays readable until a new one replaces it."
      verb="Retry"
      send={(why) => call("post", `${WORK}/resubmit`, { path, body: { why } })}
      done={`${job} will retry ${lot}.`}
    >
      Retry
    </ActionButton>
  );
}

/** Make finished work again from the current inputs. */
export function ResubmitButton(path: WorkPath) {
  const { job, lot } = path;
  return (
    <ActionButton
      icon="replay"
      title={`Resubmit ${lot} to ${job}?`}
      description="The job makes the lot again from its current inputs. The published version stays readable until the new one replaces it; the jobs that read it may then be stale."
      verb="Resubmit"
      send={(why) => call("post", `${WORK}/resubmit`, { path, body: { why } })}
      done={`${job} will make ${lot} again.`}
    >
      Resubmit
    </ActionButton>
  );
}

export function HoldWorkButton(path: WorkPath) {
  const { job, lot } = path;
  return (
    <ActionButton
      icon="hand"
      title={`Hold ${lot} for ${job}?`}
      description="No worker claims this lot for this job until the hold is released. A running claim continues."
      verb="Hold"
      send={(why) => call("post", `${WORK}/hold`, { path, body: { why } })}
      done={`${lot} is on hold for ${job}.`}
    >
      Hold
    </ActionButton>
  );
}

/** Release held work. Work that is held because it is out of tries is retried. */
export function ReleaseWorkButton({ isOutOfTries = false, ...path }: HeldWork) {
  const { job, lot } = path;
  const verb = isOutOfTries ? "Retry" : "Release hold";
  return (
    <ActionButton
      icon={isOutOfTries ? "replay" : "play"}
      title={isOutOfTries ? `Retry ${job} on ${lot}?` : `Release the hold on ${lot} for ${job}?`}
      description="The job works on the lot, with all its tries, as soon as its inputs are ready."
      verb={verb}
      send={(why) => call("post", `${WORK}/release`, { path, body: { why } })}
      done={
        isOutOfTries ? `${job} will retry ${lot}.` : `The hold on ${lot} for ${job} is released.`
      }
    >
      {verb}
    </ActionButton>
  );
}

/** The release of held work: of the work itself, or of the lot that it writes. */
export function EndWorkHold({ heldLotOf, ...path }: HeldWork & { heldLotOf: EntityId | null }) {
  if (!heldLotOf) return <ReleaseWorkButton {...path} />;
  const { namespace, name: dataset } = heldLotOf;
  return <ReleaseLotButton lot={{ namespace, dataset, lot: path.lot }} />;
}

/** The dataset whose held lot alone keeps a job from working on it. */
export function heldLotOf(why: Schemas["Why"]): EntityId | null {
  const [first] = why.reasons;
  if (why.state !== "HELD" || first?.kind !== "output_locked") return null;
  return first.namespace && first.name ? { namespace: first.namespace, name: first.name } : null;
}

/** End another worker's claim on a lot. */
export function EndClaimButton({ owner, ...path }: WorkPath & { owner: string | null }) {
  const { lot } = path;
  return (
    <ActionButton
      icon="lock"
      kind="danger"
      title={`End the claim${owner ? ` of ${owner}` : ""} on ${lot}?`}
      description="The worker can publish nothing for this lot any more. The lot becomes ready for another worker, and the try counts as failed."
      verb="End claim"
      danger
      send={(why) => call("post", `${WORK}/end-claim`, { path, body: { why } })}
      done={`The claim on ${lot} has ended.`}
    >
      End claim
    </ActionButton>
  );
}

/** The next action on a job's work, by its state. */
export function WorkAction({
  work,
  heldLotOf = null,
}: {
  work: Pick<Schemas["Work"], "namespace" | "job" | "lot" | "state" | "owner">;
  heldLotOf?: EntityId | null;
}) {
  const { state, owner } = work;
  const path = { namespace: work.namespace, job: work.job, lot: work.lot };
  if (state === "HELD") return <EndWorkHold {...path} heldLotOf={heldLotOf} />;
  if (state === "RETRYABLE") return <RetryButton {...path} />;
  if (state === "RUNNING") return <EndClaimButton {...path} owner={owner} />;
  if (state === "DONE") return <ResubmitButton {...path} />;
  return <HoldWorkButton {...path} />;
}

interface JobProps {
  namespace: string;
  job: string;
  isHeld: boolean;
}

/** Hold a whole job, or release its hold. */
export function HoldJobButton({ namespace, job, isHeld }: JobProps) {
  const path = { namespace, job };
  return isHeld ? (
    <ActionButton
      icon="play"
      title={`Release the hold on ${job}?`}
      description="Workers claim its lots again."
      verb="Release hold"
      send={(why) => call("post", `${JOB}/release`, { path, body: { why } })}
      done={({ stoppedBy }) => releaseText(job, stoppedBy)}
    >
      Release hold
    </ActionButton>
  ) : (
    <ActionButton
      icon="hand"
      title={`Hold ${job}?`}
      description="No worker claims its lots until the hold is released. Running claims continue."
      verb="Hold job"
      send={(why) => call("post", `${JOB}/hold`, { path, body: { why } })}
      done={`${job} is on hold.`}
    >
      Hold
    </ActionButton>
  );
}

interface DatasetProps {
  namespace: string;
  dataset: string;
  isHeld: boolean;
  label?: string;
}

/** Hold every job that reads or writes a dataset, or release that hold. */
export function HoldDatasetButton({ label = "Release hold", ...props }: DatasetProps) {
  const { namespace, dataset, isHeld } = props;
  const path = { namespace, dataset };
  return isHeld ? (
    <ActionButton
      icon="play"
      title={`Release the hold on ${dataset}?`}
      description="The jobs that read or write it work again."
      verb="Release hold"
      send={(why) => call("post", `${DATASET}/release`, { path, body: { why } })}
      done={({ stoppedBy }) => releaseText(dataset, stoppedBy)}
    >
      {label}
    </ActionButton>
  ) : (
    <ActionButton
      icon="hand"
      title={`Hold ${dataset}?`}
      description="No job that reads or writes its lots starts on one until the hold is released. Running claims continue."
      verb="Hold dataset"
      send={(why) => call("post", `${DATASET}/hold`, { path, body: { why } })}
      done={`${dataset} is on hold.`}
    >
      Hold
    </ActionButton>
  );
}

type WholeHold = Pick<Schemas["HeldWhole"], "kind" | "namespace" | "name" | "source">;

/** The release of a held job or dataset, or of the dataset that it is held with. */
export function EndHold({ hold: { kind, namespace, name, source } }: { hold: WholeHold }) {
  if (source) {
    const path = { namespace: source.namespace, dataset: source.name };
    return <HoldDatasetButton {...path} isHeld label="Release source" />;
  }
  if (kind === "DATASET") return <HoldDatasetButton namespace={namespace} dataset={name} isHeld />;
  return <HoldJobButton namespace={namespace} job={name} isHeld />;
}

/** Report a release, and the other holds that still apply. */
function releaseText(name: string, [first, ...rest]: readonly Schemas["HeldWhole"][]): string {
  if (!first) return `The hold on ${name} is released.`;
  const more = rest.length ? ` and ${rest.length} more` : "";
  const kind = first.kind === "DATASET" ? "dataset" : "job";
  return `The hold on ${name} is released. It is still stopped by the hold on ${kind} ${first.name}${more}.`;
}
