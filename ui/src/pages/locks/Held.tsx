/** What waits for a person: whole jobs and datasets, lots of datasets, lots of jobs. */
import { AcceptLot, FreeLot } from "../../actions/lots";
import { ReleaseHold, ReleaseWork } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { DatasetName, JobName, LotName, WorkName } from "../../kit/Names";
import { usePages } from "../../kit/pages";
import { Panel } from "../../kit/Panel";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/words";
import { lotPlace } from "../../router/places";

type HeldLot = Schemas["HeldLot"];

const LOTS: Column<HeldLot>[] = [
  { title: "lot", cell: (lot) => <LotName dataset={{ namespace: lot.namespace, name: lot.dataset }} lot={lot.lot} />, width: "minmax(8rem, 1fr)" },
  { title: "of", cell: (lot) => <DatasetName of={{ namespace: lot.namespace, name: lot.dataset }} />, width: "minmax(5rem, 1fr)" },
  { title: "for", cell: (lot) => <For lot={lot} />, width: "176px", wide: true },
  { title: "held by", cell: (lot) => lot.who, width: "minmax(5rem, 0.7fr)", wide: true, told: true },
  { title: "why", cell: (lot) => <span title={lot.why}>{lot.why}</span>, width: "minmax(6rem, 1.8fr)", wide: true, told: true },
  { title: "since", cell: (lot) => <Time at={lot.since} />, width: "84px", wide: true, told: true },
  { title: "", acts: true, cell: (lot) => (lot.byHand ? <FreeLot lot={lot} /> : lot.forChecks && <AcceptLot lot={lot} />), width: "110px", end: true },
];

function For({ lot }: { lot: HeldLot }) {
  if (lot.byHand) return <Tag tone="held">by hand</Tag>;
  return lot.forChecks ? <Tag tone="bad">its checks</Tag> : <Tag tone="warn">what it is made from</Tag>;
}

export function Held() {
  const standing = useGet("/api/v1/standing", {});
  const lots = usePages("/api/v1/held-lots", {}, (answer) => ({ items: answer.lots, total: answer.totalCount }));
  const work = standing.value?.stuck.filter((each) => each.state === "HELD") ?? [];
  const holds = standing.value?.holds ?? [];
  const isNothing = standing.value && lots.isReady && lots.count + work.length + holds.length === 0;
  if (isNothing) {
    return (
      <Empty icon="check" title="Nothing is held">
        A lot, a dataset or a job can be held on its page, or by hand:
        <pre>{"penstock lots hold NAMESPACE/DATASET LOT --why REASON\npenstock datasets hold NAMESPACE/DATASET --why REASON\npenstock jobs hold NAMESPACE/JOB --why REASON"}</pre>
      </Empty>
    );
  }
  return (
    <>
      <Shown of={standing}>{() => (holds.length ? <Wholes holds={holds} /> : null)}</Shown>
      {lots.problem && <Trouble problem={lots.problem} />}
      {lots.count > 0 && (
        <Panel title="Lots of datasets" aside={`${lots.said("lot")} that nobody may read or write`}>
          <Table columns={LOTS} label="held lots" count={lots.count} row={lots.row} onRange={lots.onRange} to={(lot) => lotPlace({ namespace: lot.namespace, name: lot.dataset }, lot.lot)} rows={12} below={(lot) => <Reason who={lot.who} why={lot.why} at={lot.since} />} />
        </Panel>
      )}
      {work.length > 0 && (
        <Panel title="Lots of jobs" aside="newest first, 50 at most">
          <Rows
            of={work}
            label="held work"
            rows={12}
            below={(each) => <Reason why={each.held ?? each.error} at={each.since} />}
            columns={[
              { title: "lot", cell: (each) => <WorkName job={{ namespace: each.namespace, name: each.job }} lot={each.lot} />, width: "minmax(8rem, 1fr)" },
              { title: "job", cell: (each) => <JobName of={{ namespace: each.namespace, name: each.job }} />, width: "minmax(5rem, 1fr)" },
              { title: "why", cell: (each) => <span title={each.held ?? each.error}>{each.held ?? each.error}</span>, width: "minmax(6rem, 2fr)", wide: true, told: true },
              { title: "since", cell: (each) => <Time at={each.since} />, width: "84px", wide: true, told: true },
              { title: "", acts: true, cell: (each) => <ReleaseWork work={each} />, width: "110px", end: true },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

/** Why something is held, by whom and since when, where there is room for one line. */
function Reason({ who, why, at }: { who?: string; why: string; at: string }) {
  return (
    <span title={why}>
      <Time at={at} />
      {who && `, ${who}`}: {why || "no reason given"}
    </span>
  );
}

function Wholes({ holds }: { holds: readonly Schemas["HeldWhole"][] }) {
  return (
    <Panel title="Whole datasets and jobs" aside={plural(holds.length, "hold")}>
      <Rows
        of={holds}
        label="whole holds"
        rows={8}
        below={(hold) => <Reason who={hold.who} why={hold.why} at={hold.since} />}
        columns={[
          { title: "what", cell: (hold) => (hold.kind === "DATASET" ? <DatasetName of={hold} whole /> : <JobName of={hold} whole />), width: "minmax(8rem, 1.4fr)" },
          { title: "held by", cell: (hold) => hold.who, width: "minmax(5rem, 0.7fr)", wide: true, told: true },
          { title: "why", cell: (hold) => <span title={hold.why}>{hold.why}</span>, width: "minmax(6rem, 2fr)", wide: true, told: true },
          { title: "since", cell: (hold) => <Time at={hold.since} />, width: "84px" },
          { title: "", acts: true, cell: (hold) => <ReleaseHold hold={hold} />, width: "150px", end: true },
        ]}
      />
    </Panel>
  );
}
