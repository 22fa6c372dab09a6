/** What can be done with a lot of a job, wherever it is shown. */
import { call, type Schemas } from "../api/client";
import { Act } from "../kit/Act";
import { FreeLot } from "./lots";

interface Props {
  namespace: string;
  job: string;
  lot: string;
}

/** Has a job try a lot at once: one that failed, was held by its tries, or is done already. */
export function RetryLot({ namespace, job, lot, label = "Retry now" }: Props & { label?: string }) {
  return (
    <Act
      icon="replay"
      ask={{
        title: `Run ${job} on ${lot} again?`,
        says: "The lot is worked on anew with all its tries. What was published stays readable until the new version replaces it; jobs that read it may then be stale.",
        verb: "Run again",
        reason: "needed",
      }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/resubmit", { path: { namespace, job, lot }, body: { why } })}
      done={`${job} will work on ${lot} again.`}
    >
      {label}
    </Act>
  );
}

/** Lets a job work on a lot that was held. */
export function UnholdLot({ namespace, job, lot }: Props) {
  return (
    <Act
      icon="play"
      ask={{ title: `Let ${job} work on ${lot}?`, says: "The hold ends and the lot is worked on, with all its tries, as soon as its inputs are there.", verb: "Release the hold", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/unhold", { path: { namespace, job, lot }, body: { why } })}
      done={`${lot} is no longer held for ${job}.`}
    >
      Release
    </Act>
  );
}

/** The action that really lets a job work on a lot: releasing the work, or the lot that it writes. */
export function ReleaseWork({ work }: { work: Pick<Schemas["StuckLot"], "namespace" | "job" | "lot" | "heldLotOf"> }) {
  const held = work.heldLotOf;
  if (held) return <FreeLot lot={{ namespace: held.namespace, dataset: held.name, lot: work.lot }} />;
  return <UnholdLot namespace={work.namespace} job={work.job} lot={work.lot} />;
}

/** The dataset whose held lot alone keeps a job from working on it. */
export function heldLotOf(why: Schemas["Why"]): Schemas["EntityId"] | null {
  const [first] = why.reasons;
  if (why.state !== "HELD" || first?.kind !== "output_locked" || !first.namespace || !first.name) return null;
  return { namespace: first.namespace, name: first.name };
}

/** The action that really ends the hold of a whole job or dataset. */
export function ReleaseHold({ hold }: { hold: Pick<Schemas["HeldWhole"], "kind" | "namespace" | "name" | "source"> }) {
  if (hold.source) return <HoldDataset namespace={hold.source.namespace} dataset={hold.source.name} isHeld label="Release its source" />;
  if (hold.kind === "DATASET") return <HoldDataset namespace={hold.namespace} dataset={hold.name} isHeld />;
  return <HoldJob namespace={hold.namespace} job={hold.name} isHeld />;
}

/** Keeps a job from a lot. */
export function HoldLot({ namespace, job, lot }: Props) {
  return (
    <Act
      icon="hand"
      ask={{ title: `Hold ${lot} for ${job}?`, says: "Nobody works on this lot for this job until the hold is released. Work that is under way goes on.", verb: "Hold", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/hold", { path: { namespace, job, lot }, body: { why } })}
      done={`${lot} is held for ${job}.`}
    >
      Hold
    </Act>
  );
}

/** Ends somebody's claim on a lot. */
export function EndClaim({ namespace, job, lot, owner }: Props & { owner?: string }) {
  return (
    <Act
      icon="lock"
      kind="danger"
      ask={{
        title: `End the claim${owner ? ` of ${owner}` : ""} on ${lot}?`,
        says: "Whoever holds it can publish nothing any more, whatever it has done. The lot goes back to be worked on, and the try counts as failed.",
        verb: "End the claim",
        danger: true,
        reason: "needed",
      }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/release", { path: { namespace, job, lot }, body: { why } })}
      done={`The claim on ${lot} is over.`}
    >
      End the claim
    </Act>
  );
}

/** Stops a whole job, or lets it go on. */
export function HoldJob({ namespace, job, isHeld }: { namespace: string; job: string; isHeld: boolean }) {
  const path = { namespace, job };
  return isHeld ? (
    <Act
      icon="play"
      ask={{ title: `Let ${job} go on?`, says: "Its lots are claimed again as soon as a worker asks.", verb: "Let it go on", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/unhold", { path, body: { why } })}
      done={({ stoppedBy }) => goesOn(job, stoppedBy)}
    >
      Let it go on
    </Act>
  ) : (
    <Act
      icon="hand"
      ask={{ title: `Hold ${job}?`, says: "None of its lots is claimed until it is let go. Work that is under way goes on.", verb: "Hold the job", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/hold", { path, body: { why } })}
      done={`${job} is held.`}
    >
      Hold
    </Act>
  );
}

/** Stops every job that reads or writes a dataset, or lets them go on. */
export function HoldDataset({ namespace, dataset, isHeld, label = "Let it go on" }: { namespace: string; dataset: string; isHeld: boolean; label?: string }) {
  const path = { namespace, dataset };
  return isHeld ? (
    <Act
      icon="play"
      ask={{ title: `Let ${dataset} go on?`, says: "The jobs that read or write it work again.", verb: "Let it go on", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}/unhold", { path, body: { why } })}
      done={({ stoppedBy }) => goesOn(dataset, stoppedBy)}
    >
      {label}
    </Act>
  ) : (
    <Act
      icon="hand"
      ask={{ title: `Hold ${dataset}?`, says: "No job that reads or writes its lots begins with one until it is let go. Work that is under way goes on.", verb: "Hold the dataset", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}/hold", { path, body: { why } })}
      done={`${dataset} is held.`}
    >
      Hold
    </Act>
  );
}

/** Whether other holds still stop what was released, in words. */
function goesOn(name: string, [first, ...rest]: readonly Schemas["HeldWhole"][]): string {
  if (!first) return `${name} goes on.`;
  const more = rest.length ? ` and ${rest.length} more` : "";
  return `${name} is released, and still stopped: ${first.kind === "DATASET" ? "dataset" : "job"} ${first.name}${more} is held.`;
}
