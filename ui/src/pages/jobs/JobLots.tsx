/** The lots of a job: a grid of each output, and a list of its work by state. */
import { WorkAction } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { WorkLink } from "../../kit/links";
import { usePagedList } from "../../kit/usePagedList";
import { Panel } from "../../kit/Panel";
import { EmptyState, ProblemNote } from "../../kit/Async";
import { WORK_STATES, type WorkState } from "../../kit/states";
import { Status } from "../../kit/Status";
import { type Column, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { LotsPanel } from "../../lots/LotsPanel";
import { workAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";

type Work = Schemas["Work"];

export function JobLots({ job, wiring }: { job: Schemas["Job"]; wiring: Schemas["Wiring"] }) {
  const [query, setQuery] = useSearchParams();
  const state = query.get("work") as WorkState | null;
  const list = usePagedList(
    "/api/v1/namespaces/{namespace}/jobs/{job}/lots",
    { path: { namespace: job.namespace, job: job.name }, query: state ? { state } : {} },
    (answer) => ({ items: answer.lots, total: answer.totalCount }),
  );
  const columns: Column<Work>[] = [
    {
      title: "lot",
      cell: (work) => <WorkLink job={job.id} lot={work.lot} />,
      width: "minmax(9rem, 1fr)",
    },
    { title: "state", cell: (work) => <Status of={work.state} />, width: "100px" },
    {
      title: "tries",
      cell: (work) => (work.attempts ? `${work.attempts} of ${work.attemptsMax}` : ""),
      width: "70px",
      wide: true,
    },
    { title: "worker", cell: (work) => work.owner, width: "minmax(5rem, 0.7fr)", wide: true },
    {
      title: "error",
      cell: (work) => <span title={work.error ?? ""}>{work.error}</span>,
      width: "minmax(6rem, 1.4fr)",
      wide: true,
    },
    { title: "since", cell: (work) => <Time at={work.since} />, width: "90px" },
    {
      title: "",
      isAction: true,
      cell: (work) => <WorkAction work={work} />,
      width: "134px",
      end: true,
    },
  ];
  return (
    <>
      {wiring.outputs.map((output) => (
        <LotsPanel
          key={`${output.namespace}/${output.name}`}
          dataset={output}
          title={`Lots of ${output.name}`}
        />
      ))}
      <Panel
        title="Work"
        aside={
          <>
            {list.countText("lot")}
            <select
              className="field"
              aria-label="state of the work"
              value={state ?? ""}
              onChange={(event) => setQuery({ work: event.target.value })}
            >
              <option value="">any state</option>
              {WORK_STATES.map((each) => (
                <option key={each} value={each}>
                  {each.toLowerCase()}
                </option>
              ))}
            </select>
          </>
        }
      >
        {list.problem ? (
          <ProblemNote problem={list.problem} />
        ) : list.isReady && list.count === 0 ? (
          <EmptyState
            icon="check"
            title={state ? `No lot is ${state.toLowerCase()}` : "No lot yet"}
          />
        ) : (
          <Table
            columns={columns}
            label="work"
            count={list.count}
            row={list.row}
            onRange={list.onRange}
            to={(work) => workAddress(job.id, work.lot)}
            rows={14}
          />
        )}
      </Panel>
    </>
  );
}
