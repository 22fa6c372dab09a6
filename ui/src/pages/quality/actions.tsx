/** What can be done with a lot that is held, or has become stale. */
import { call, type Schemas } from "../../api/client";
import { Act } from "../../kit/Act";

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
export function FreeLot({ lot }: { lot: HeldLot }) {
  return (
    <Act
      icon="play"
      ask={{ title: `Let ${lot.lot} of ${lot.dataset} go on?`, says: "The lot becomes what it was before it was held, and what was held with it follows; jobs may read and write it again.", verb: "Release the hold", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/unhold", { path: lot, body: { why } })}
      done={`${lot.lot} is no longer held.`}
    >
      Release
    </Act>
  );
}

/** Has a job make a lot again from what its inputs are now. */
export function MakeAgain({ work }: { work: Pick<Schemas["Work"], "namespace" | "job" | "lot"> }) {
  const { namespace, job, lot } = work;
  return (
    <Act
      icon="replay"
      ask={{ title: `Have ${job} make ${lot} again?`, says: "It reads its inputs as they are now. What it made before stays readable until then; jobs that read it may be stale after that.", verb: "Make it again", reason: "needed" }}
      run={(why) => call("post", "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/resubmit", { path: { namespace, job, lot }, body: { why } })}
      done={`${job} will make ${lot} again.`}
    >
      Make again
    </Act>
  );
}
