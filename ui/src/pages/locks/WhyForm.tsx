/** A form that explains why a job does not work on a lot. */
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { TargetPicker } from "../../kit/TargetPicker";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { workAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import "../jobs/jobs.css";
import { WhyPanel } from "../jobs/Why";
import { WorkAction } from "../../actions/work";

export function WhyForm() {
  const [query] = useSearchParams();
  const [namespace, job, lot] = [query.get("namespace"), query.get("job"), query.get("lot")];
  return (
    <>
      <TargetPicker
        kind="job"
        fields={[{ name: "lot", label: "Lot", hint: "20261115PT1H09", needed: true }]}
        verb="Explain"
      />
      {namespace && job && lot ? (
        <>
          <WhyPanel key={`${namespace}/${job}/${lot}`} namespace={namespace} job={job} lot={lot} />
          <WorkActions namespace={namespace} job={job} lot={lot} />
        </>
      ) : (
        <EmptyState icon="search" title="Choose a job and a lot">
          The explanation is a chain: the reason why the job does not work on the lot, the reason
          behind it, and so on to the root cause.
        </EmptyState>
      )}
    </>
  );
}

/** The actions on the work. */
function WorkActions({ namespace, job, lot }: { namespace: string; job: string; lot: string }) {
  const path = { namespace, job, lot };
  const state = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", { path }).data
    ?.state;
  const work = useGet(
    "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}",
    state ? { path } : null,
  );
  if (!state) return null;
  return (
    <Async of={work}>
      {(found) => (
        <Panel title="Actions">
          <div className="body row">
            <WorkAction work={found} />
            <ButtonLink to={workAddress({ namespace, name: job }, lot)} icon="right">
              Open work
            </ButtonLink>
          </div>
        </Panel>
      )}
    </Async>
  );
}
