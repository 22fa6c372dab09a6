/** The actions on a lot of a dataset, wherever it is shown. */
import { call, type EntityId, type Schemas } from "../api/client";
import { ActionButton } from "../kit/ActionButton";
import { RetryButton } from "./work";

type LotPath = Pick<Schemas["HeldLot"], "namespace" | "dataset" | "lot">;

const LOT = "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}";

/** Lock a lot for its readers and writers. */
export function HoldLotButton({ lot }: { lot: LotPath }) {
  return (
    <ActionButton
      icon="hand"
      title={`Hold ${lot.lot} of ${lot.dataset}?`}
      description="The lot is locked: no job reads or writes it until the hold is released."
      verb="Hold lot"
      send={(why) => call("post", `${LOT}/hold`, { path: lot, body: { why } })}
      done={`${lot.lot} is on hold.`}
    >
      Hold
    </ActionButton>
  );
}

/** Allow jobs to read a lot whose checks failed. */
export function AcceptLotButton({ lot }: { lot: LotPath }) {
  return (
    <ActionButton
      icon="check"
      title={`Accept ${lot.lot} of ${lot.dataset}?`}
      description="The lot becomes readable although its checks failed, and waiting jobs start. It stays accepted until a job makes it again."
      verb="Accept lot"
      danger
      send={(why) => call("post", `${LOT}/accept`, { path: lot, body: { why } })}
      done={`${lot.lot} is accepted.`}
    >
      Accept
    </ActionButton>
  );
}

/** Return a lot to the state before its hold. */
export function ReleaseLotButton({
  lot,
  label = "Release hold",
}: {
  lot: LotPath;
  label?: string;
}) {
  return (
    <ActionButton
      icon="play"
      title={`Release the hold on ${lot.lot} of ${lot.dataset}?`}
      description="The lot returns to its state before the hold, together with the lots that were held with it. Jobs may read and write it again."
      verb="Release hold"
      send={(why) => call("post", `${LOT}/release`, { path: lot, body: { why } })}
      done={`The hold on ${lot.lot} is released.`}
    >
      {label}
    </ActionButton>
  );
}

/** The action that ends the hold of a lot, by the cause of the hold. */
export function EndLotHold({ lot, hold }: { lot: LotPath; hold: Schemas["LotHold"] }) {
  if (hold.kind === null) return null;
  if (hold.kind === "CHECKS") return <AcceptLotButton lot={lot} />;
  if (hold.kind === "ATTEMPTS" && hold.job) {
    return <RetryButton namespace={hold.job.namespace} job={hold.job.name} lot={lot.lot} />;
  }
  if (hold.kind === "UPSTREAM" && hold.source)
    return <SourceButton source={hold.source} lot={lot} />;
  return <ReleaseLotButton lot={lot} />;
}

/** The release of the lot of another dataset that this lot is held with. */
function SourceButton({ source, lot }: { source: EntityId; lot: LotPath }) {
  const path = { namespace: source.namespace, dataset: source.name, lot: lot.lot };
  return <ReleaseLotButton lot={path} label={`Release hold on ${source.name}`} />;
}
