/** The lots of a job: by state, as a grid of what it makes, and as a list. */
import { EndClaim, HoldLot, ReleaseWork, RetryLot } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { WorkName } from "../../kit/Names";
import { usePages } from "../../kit/pages";
import { Panel } from "../../kit/Panel";
import { Empty, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { LotsPanel } from "../../lots/LotsPanel";
import { workPlace } from "../../router/places";
import { useQuery } from "../../router/router";

type Work = Schemas["Work"];
const STATES = ["READY", "RUNNING", "WAITING", "LATER", "HELD", "DONE"] as const;

export function JobLots({ job, wiring }: { job: Schemas["Job"]; wiring: Schemas["Wiring"] }) {
  const [query, setQuery] = useQuery();
  const state = query.get("work") as (typeof STATES)[number] | null;
  const list = usePages("/api/v1/namespaces/{namespace}/jobs/{job}/lots", { path: { namespace: job.namespace, job: job.name }, query: state ? { state } : {} }, (answer) => ({ items: answer.lots, total: answer.totalCount }));
  const columns: Column<Work>[] = [
    { title: "lot", cell: (work) => <WorkName job={job.id} lot={work.lot} />, width: "minmax(9rem, 1fr)" },
    { title: "state", cell: (work) => <Status of={work.state} />, width: "100px" },
    { title: "tries", cell: (work) => (work.attempts ? `${work.attempts} of ${work.attemptsMax}` : ""), width: "70px", wide: true },
    { title: "worker", cell: (work) => work.owner, width: "minmax(5rem, 0.7fr)", wide: true },
    { title: "error", cell: (work) => <span title={work.error ?? ""}>{work.error}</span>, width: "minmax(6rem, 1.4fr)", wide: true },
    { title: "since", cell: (work) => <Time at={work.since} />, width: "90px" },
    { title: "", acts: true, cell: (work) => <WorkAction work={work} />, width: "130px", end: true },
  ];
  return (
    <>
      {wiring.outputs.map((output) => (
        <LotsPanel key={`${output.namespace}/${output.name}`} dataset={output} title={`Lots of ${output.name}`} />
      ))}
      <Panel
        title="Work"
        aside={
          <>
            {list.said("lot")}
            <select className="field" aria-label="state of the work" value={state ?? ""} onChange={(event) => setQuery({ work: event.target.value })}>
              <option value="">every state</option>
              {STATES.map((each) => (
                <option key={each} value={each}>
                  {each.toLowerCase()}
                </option>
              ))}
            </select>
          </>
        }
      >
        {list.problem ? <Trouble problem={list.problem} /> : list.isReady && list.count === 0 ? <Empty icon="check" title={state ? `No lot is ${state.toLowerCase()}` : "No lot has come yet"} /> : <Table columns={columns} label="work" count={list.count} row={list.row} onRange={list.onRange} to={(work) => workPlace(job.id, work.lot)} rows={14} />}
      </Panel>
    </>
  );
}

/** The one thing to do next with a lot of a job. */
export function WorkAction({ work, heldLotOf = null }: { work: Pick<Work, "namespace" | "job" | "lot" | "state" | "owner">; heldLotOf?: Schemas["EntityId"] | null }) {
  const { namespace, job, lot } = work;
  if (work.state === "HELD") return <ReleaseWork work={{ namespace, job, lot, heldLotOf }} />;
  if (work.state === "LATER") return <RetryLot namespace={namespace} job={job} lot={lot} />;
  if (work.state === "RUNNING") return <EndClaim namespace={namespace} job={job} lot={lot} owner={work.owner ?? ""} />;
  if (work.state === "DONE") return <RetryLot namespace={namespace} job={job} lot={lot} label="Run again" />;
  return <HoldLot namespace={namespace} job={job} lot={lot} />;
}
