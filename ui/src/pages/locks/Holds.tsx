/** The holds that wait for a person: on jobs and datasets, on lots, on the work of jobs. */
import { AcceptLotButton, ReleaseLotButton } from "../../actions/lots";
import { EndHold, EndWorkHold } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { DatasetLink, JobLink, LotLink, WorkLink } from "../../kit/links";
import { usePagedList } from "../../kit/usePagedList";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async, ProblemNote } from "../../kit/Async";
import { Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/format";
import { lotAddress } from "../../router/addresses";

type HeldLot = Schemas["HeldLot"];

const LOTS: Column<HeldLot>[] = [
  {
    title: "lot",
    cell: (lot) => (
      <LotLink dataset={{ namespace: lot.namespace, name: lot.dataset }} lot={lot.lot} />
    ),
    width: "minmax(7.5rem, 1fr)",
  },
  {
    title: "of",
    cell: (lot) => <DatasetLink of={{ namespace: lot.namespace, name: lot.dataset }} />,
    width: "minmax(4rem, 1fr)",
  },
  { title: "cause", cell: (lot) => <HoldCause lot={lot} />, width: "176px", wide: true },
  {
    title: "held by",
    cell: (lot) => lot.who,
    width: "minmax(5rem, 0.7fr)",
    wide: true,
    inBelow: true,
  },
  {
    title: "why",
    cell: (lot) => <span title={lot.why}>{lot.why}</span>,
    width: "minmax(6rem, 1.8fr)",
    wide: true,
    inBelow: true,
  },
  {
    title: "since",
    cell: (lot) => <Time at={lot.since} />,
    width: "84px",
    wide: true,
    inBelow: true,
  },
  {
    title: "",
    isAction: true,
    cell: (lot) =>
      lot.byHand ? <ReleaseLotButton lot={lot} /> : lot.forChecks && <AcceptLotButton lot={lot} />,
    width: "134px",
    end: true,
  },
];

function HoldCause({ lot }: { lot: HeldLot }) {
  if (lot.byHand) return <Tag tone="held">a person</Tag>;
  return lot.forChecks ? <Tag tone="bad">failed checks</Tag> : <Tag tone="warn">its inputs</Tag>;
}

export function Holds() {
  const standing = useGet("/api/v1/standing", {});
  const lots = usePagedList("/api/v1/held-lots", {}, (answer) => ({
    items: answer.lots,
    total: answer.totalCount,
  }));
  const work = standing.data?.stuck.filter((each) => each.state === "HELD") ?? [];
  const holds = standing.data?.holds ?? [];
  const isNothing = standing.data && lots.isReady && lots.count + work.length + holds.length === 0;
  if (isNothing) {
    return (
      <EmptyState icon="check" title="No hold">
        Hold a lot, a dataset or a job on its page, or by a command:
        <pre>
          {
            "penstock lots hold NAMESPACE/DATASET LOT --why REASON\npenstock datasets hold NAMESPACE/DATASET --why REASON\npenstock jobs hold NAMESPACE/JOB --why REASON"
          }
        </pre>
      </EmptyState>
    );
  }
  return (
    <>
      <Async of={standing}>
        {() => (holds.length ? <JobAndDatasetHolds holds={holds} /> : null)}
      </Async>
      {lots.problem && <ProblemNote problem={lots.problem} />}
      {lots.count > 0 && (
        <Panel title="Lots" aside={`${lots.countText("lot")} that no job may read or write`}>
          <Table
            columns={LOTS}
            label="held lots"
            count={lots.count}
            row={lots.row}
            onRange={lots.onRange}
            to={(lot) => lotAddress({ namespace: lot.namespace, name: lot.dataset }, lot.lot)}
            rows={12}
            below={(lot) => <Reason who={lot.who} why={lot.why} at={lot.since} />}
          />
        </Panel>
      )}
      {work.length > 0 && (
        <Panel title="Work of jobs" aside="newest first, 50 at most">
          <Rows
            of={work}
            label="held work"
            rows={12}
            below={(each) => <Reason why={each.held ?? each.error} at={each.since} />}
            columns={[
              {
                title: "lot",
                cell: (each) => (
                  <WorkLink job={{ namespace: each.namespace, name: each.job }} lot={each.lot} />
                ),
                width: "minmax(7.5rem, 1fr)",
              },
              {
                title: "job",
                cell: (each) => <JobLink of={{ namespace: each.namespace, name: each.job }} />,
                width: "minmax(4rem, 1fr)",
              },
              {
                title: "why",
                cell: (each) => (
                  <span title={each.held ?? each.error}>{each.held ?? each.error}</span>
                ),
                width: "minmax(6rem, 2fr)",
                wide: true,
                inBelow: true,
              },
              {
                title: "since",
                cell: (each) => <Time at={each.since} />,
                width: "84px",
                wide: true,
                inBelow: true,
              },
              {
                title: "",
                isAction: true,
                cell: (each) => (
                  <EndWorkHold
                    namespace={each.namespace}
                    job={each.job}
                    lot={each.lot}
                    heldLotOf={each.heldLotOf}
                  />
                ),
                width: "134px",
                end: true,
              },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

/** The time, the person and the reason of a hold in one line. */
function Reason({ who, why, at }: { who?: string; why: string; at: string }) {
  return (
    <span title={why}>
      <Time at={at} />
      {who && `, ${who}`}: {why || "no reason given"}
    </span>
  );
}

function JobAndDatasetHolds({ holds }: { holds: readonly Schemas["HeldWhole"][] }) {
  return (
    <Panel title="Datasets and jobs" aside={plural(holds.length, "hold")}>
      <Rows
        of={holds}
        label="holds on datasets and jobs"
        rows={8}
        below={(hold) => <Reason who={hold.who} why={hold.why} at={hold.since} />}
        columns={[
          {
            title: "dataset or job",
            cell: (hold) =>
              hold.kind === "DATASET" ? (
                <DatasetLink of={hold} whole />
              ) : (
                <JobLink of={hold} whole />
              ),
            width: "minmax(8rem, 1.4fr)",
          },
          {
            title: "held by",
            cell: (hold) => hold.who,
            width: "minmax(5rem, 0.7fr)",
            wide: true,
            inBelow: true,
          },
          {
            title: "why",
            cell: (hold) => <span title={hold.why}>{hold.why}</span>,
            width: "minmax(6rem, 2fr)",
            wide: true,
            inBelow: true,
          },
          {
            title: "since",
            cell: (hold) => <Time at={hold.since} />,
            width: "84px",
            wide: true,
            inBelow: true,
          },
          {
            title: "",
            isAction: true,
            cell: (hold) => <EndHold hold={hold} />,
            width: "134px",
            end: true,
          },
        ]}
      />
    </Panel>
  );
}
