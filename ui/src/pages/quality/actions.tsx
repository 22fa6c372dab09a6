/** What can be done with a lot that has become stale. */
import { call, type Schemas } from "../../api/client";
import { Act } from "../../kit/Act";

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
