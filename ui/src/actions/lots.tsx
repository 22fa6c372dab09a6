/** What can be done with a lot that is held, wherever it is shown. */
import { call, type Schemas } from "../api/client";
import { Act } from "../kit/Act";
import { RetryLot } from "./work";

type HeldLot = Pick<Schemas["HeldLot"], "namespace" | "dataset" | "lot">;

/** Lets a lot be read although its checks failed. */
export function AcceptLot({ lot }: { lot: HeldLot }) {
  return (
    <Act
      icon="check"
      ask={{ title: `Accept ${lot.lot} of ${lot.dataset}?`, says: "The lot can be read as it is, although checks of it failed, and jobs that wait for it begin. It stays accepted until it is made anew.", verb: "Accept the lot", danger: true, reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/accept", { path: lot, body: { why } })}
      done={`${lot.lot} is accepted.`}
    >
      Accept
    </Act>
  );
}

/** Puts a lot back as it was before it was held. */
export function FreeLot({ lot, label = "Release" }: { lot: HeldLot; label?: string }) {
  return (
    <Act
      icon="play"
      ask={{ title: `Let ${lot.lot} of ${lot.dataset} go on?`, says: "The lot becomes what it was before it was held, and what was held with it follows; jobs may read and write it again.", verb: "Release the hold", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/unhold", { path: lot, body: { why } })}
      done={`${lot.lot} is no longer held.`}
    >
      {label}
    </Act>
  );
}

/** The action that really ends the hold of a lot, whatever holds it. */
export function ReleaseLot({ lot, hold }: { lot: HeldLot; hold: Schemas["LotHold"] }) {
  if (hold.kind === null) return null;
  if (hold.kind === "CHECKS") return <AcceptLot lot={lot} />;
  if (hold.kind === "ATTEMPTS" && hold.job) return <RetryLot namespace={hold.job.namespace} job={hold.job.name} lot={lot.lot} />;
  if (hold.kind === "UPSTREAM" && hold.source) {
    return <FreeLot lot={{ namespace: hold.source.namespace, dataset: hold.source.name, lot: lot.lot }} label={`Release ${hold.source.name}`} />;
  }
  return <FreeLot lot={lot} label="Release the hold" />;
}
