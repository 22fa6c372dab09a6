/** Why a job does not work on a lot, for any job and any lot, down to the root cause. */
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { Pick } from "../../kit/Pick";
import { Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { workPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import "../jobs/jobs.css";
import { WhyPanel } from "../jobs/Why";
import { WorkAction } from "../jobs/JobLots";

export function WhyAny() {
  const [query] = useQuery();
  const [namespace, job, lot] = [query.get("namespace"), query.get("job"), query.get("lot")];
  return (
    <>
      <Pick kind="job" fields={[{ name: "lot", label: "Lot", hint: "20261115PT1H09", needed: true }]} verb="Say why" />
      {namespace && job && lot ? (
        <>
          <WhyPanel key={`${namespace}/${job}/${lot}`} namespace={namespace} job={job} lot={lot} />
          <Next namespace={namespace} job={job} lot={lot} />
        </>
      ) : (
        <Empty icon="search" title="Name a job and a lot">
          What stops the job from working on that lot is told as a chain: what it waits for, what that waits for, and so on to the cause.
        </Empty>
      )}
    </>
  );
}

/** What can be done about it. */
function Next({ namespace, job, lot }: { namespace: string; job: string; lot: string }) {
  const path = { namespace, job, lot };
  const state = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", { path }).value?.state;
  const work = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}", state ? { path } : null);
  if (!state) return null;
  return (
    <Shown of={work}>
      {(found) => (
        <Panel title="What can be done">
          <div className="body row">
            <WorkAction work={found} />
            <ButtonLink to={workPlace({ namespace, name: job }, lot)} icon="right">
              All about it
            </ButtonLink>
          </div>
        </Panel>
      )}
    </Shown>
  );
}
