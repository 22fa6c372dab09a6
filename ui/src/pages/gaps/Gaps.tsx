/** Which lots of a dataset are not there, in ranges, why, and a backfill of what is missing. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { DatasetName, JobName, LotName } from "../../kit/Names";
import { Pick } from "../../kit/Pick";
import { PageHead, Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";
import { HeatGrid } from "../../lots/HeatGrid";
import { spanOf, startOf } from "../../lots/intervals";
import { Link } from "../../router/Link";
import { gapsPlace } from "../../router/places";
import { useQuery, withQuery } from "../../router/router";
import { WhyPanel } from "../jobs/Why";
import "../jobs/jobs.css";
import { BackfillGap } from "./BackfillGap";

type Gap = Schemas["Gap"];

export default function Gaps() {
  const [query] = useQuery();
  const [namespace, dataset] = [query.get("namespace"), query.get("dataset")];
  return (
    <>
      <PageHead title="Gaps">{namespace && dataset && <DatasetName of={{ namespace, name: dataset }} whole />}</PageHead>
      <Pick
        kind="dataset"
        fields={[
          { name: "from", label: "From", hint: "the first" },
          { name: "to", label: "To", hint: "now" },
        ]}
        verb="Find gaps"
      />
      {namespace && dataset ? (
        <Asked key={`${namespace}/${dataset}`} namespace={namespace} dataset={dataset} />
      ) : (
        <>
          <Empty icon="search" title="Choose a dataset">
            Its lots must be intervals, such as 20261115PT1H09. A range is two lots, or two times such as 2026-11-15.
          </Empty>
          <Late />
        </>
      )}
    </>
  );
}

/** The datasets whose newest lots are not there yet: a gap at the end, which most people come for. */
function Late() {
  const late = useGet("/api/v1/standing", {}).value?.late ?? [];
  if (late.length === 0) return null;
  return (
    <Panel title="Late now" aside={`${plural(late.length, "dataset")}, the last to become so first`}>
      <Rows
        of={late}
        label="late datasets"
        to={(each) => gapsPlace({ namespace: each.namespace, name: each.dataset }, each.first)}
        columns={[
          { title: "dataset", cell: (each) => <Link className="name" to={gapsPlace({ namespace: each.namespace, name: each.dataset }, each.first)}>{each.dataset}</Link>, width: "minmax(8rem, 1.4fr)" },
          { title: "namespace", cell: (each) => each.namespace, wide: true },
          { title: "lots", cell: (each) => count(each.count), width: "64px", end: true },
          { title: "from", cell: (each) => <span className="mono">{each.first}</span>, width: "150px", wide: true },
          { title: "since", cell: (each) => <Time at={each.since} />, width: "100px" },
        ]}
      />
    </Panel>
  );
}

/** Only where lots are intervals can it be said which are missing. */
function Asked({ namespace, dataset }: { namespace: string; dataset: string }) {
  const standing = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/standing", { path: { namespace, dataset } });
  return (
    <Shown of={standing}>
      {({ interval }) =>
        interval ? (
          <Found namespace={namespace} dataset={dataset} />
        ) : (
          <Empty icon="table" title="Its lots are not intervals">
            Lots with free names have no order in which one could be missing. <DatasetName of={{ namespace, name: dataset }} /> lists those there are.
          </Empty>
        )
      }
    </Shown>
  );
}

function Found({ namespace, dataset }: { namespace: string; dataset: string }) {
  const [query, setQuery] = useQuery();
  const [from, to, chosen] = [query.get("from"), query.get("to"), query.get("range")];
  const found = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps", { path: { namespace, dataset }, query: { ...(from ? { from } : {}), ...(to ? { to } : {}) } }, { keep: true });
  const id = { namespace, name: dataset };
  const columns: Column<Gap>[] = [
    { title: "kind", cell: (gap) => <Status of={gap.kind} />, width: "104px" },
    { title: "first", cell: (gap) => <Link className="name mono" to={withQuery(query, { range: gap.first })}>{gap.first}</Link>, width: "minmax(8.5rem, 0.8fr)" },
    { title: "last", cell: (gap) => <span className="mono">{gap.last === gap.first ? "" : gap.last}</span>, width: "minmax(8.5rem, 0.8fr)", wide: true },
    { title: "lots", cell: (gap) => count(gap.count), width: "64px", end: true },
    { title: "cause", cell: (gap) => <span title={gap.cause?.sentence}>{gap.cause?.sentence}</span>, width: "minmax(7rem, 2.4fr)", wide: true },
  ];
  return (
    <Shown of={found}>
      {(value) => {
        const gap = value.ranges.find((each) => each.first === chosen) ?? inside(value.ranges, chosen);
        return (
          <div className="stack">
            <Panel title="Lots" aside={`${count(value.there)} of ${plural(value.count, "lot")} of ${value.interval} are there`}>
              <HeatGrid interval={value.interval} first={value.first} count={value.count} ranges={value.ranges} totals={value.totals} there={value.there} isCut={value.isCut} chosen={chosen} onChoose={(lot) => setQuery({ range: lot })} />
            </Panel>
            {value.ranges.length === 0 ? (
              <Empty icon="check" title="There is no gap">
                Every lot between {value.first} and {value.last} is there.
              </Empty>
            ) : (
              <Panel title="What is not simply there" aside={`${plural(value.ranges.length, "range")}${value.isCut ? ` told, and there are more after ${value.ranges.at(-1)?.last}` : ""}`}>
                <Rows of={value.ranges} label="gaps" columns={columns} rows={12} isChosen={(each) => each === gap} to={(each) => `/gaps${withQuery(query, { range: each.first })}`} />
              </Panel>
            )}
            {chosen && !gap && (
              <Panel title={<span className="mono">{chosen}</span>} aside={spanOf(chosen)}>
                {value.isCut && isAfter(chosen, value.ranges.at(-1)?.last) ? (
                  <p className="body">
                    Of this lot nothing was told: there are too many ranges before it. <Link to={withQuery(query, { from: chosen, range: null })}>Begin with it</Link>.
                  </p>
                ) : (
                  <p className="body">
                    <Status of="there" /> <LotName dataset={id} lot={chosen} />
                  </p>
                )}
              </Panel>
            )}
            {gap && <Cause gap={gap} />}
            <BackfillGap key={`${gap?.first ?? ""}`} dataset={id} first={gap?.first ?? value.first} last={gap?.last ?? value.last} isAll={!gap} />
          </div>
        );
      }}
    </Shown>
  );
}

function isAfter(lot: string, other: string | undefined): boolean {
  return (startOf(lot) ?? 0) > (startOf(other ?? "") ?? Infinity);
}

/** The range that a lot lies in. */
function inside(ranges: readonly Gap[], lot: string | null): Gap | undefined {
  const at = lot ? startOf(lot) : null;
  if (at === null) return undefined;
  return ranges.find((gap) => (startOf(gap.first) ?? Infinity) <= at && at <= (startOf(gap.last) ?? -Infinity));
}

/** Why the first lot of a range is not there, and what has to come first. */
function Cause({ gap }: { gap: Gap }) {
  const why = gap.cause?.why;
  return (
    <>
      <Panel title={<>Why <span className="mono">{gap.first}</span> is {gap.kind}</>} aside={gap.count > 1 ? `the first of ${plural(gap.count, "lot")} until ${gap.last}` : spanOf(gap.first)}>
        <div className="body stack">
          {!why && <p>{gap.cause?.sentence ?? "No cause is known."}</p>}
          {why && gap.cause?.roots.length === 0 && <p>The chain below says why.</p>}
          {gap.cause?.roots.map((root) => (
            <div key={`${root.namespace}/${root.dataset}/${root.lot}`} className="row">
              <span className="faint">First has to come</span>
              <LotName dataset={{ namespace: root.namespace, name: root.dataset }} lot={root.lot} />
              <span className="faint">of</span>
              <DatasetName of={{ namespace: root.namespace, name: root.dataset }} />
              {root.job ? (
                <span>
                  <span className="faint">by</span> <JobName of={root.job} />
                </span>
              ) : (
                <span className="muted">which nobody here makes: it comes from outside</span>
              )}
              <span className="muted">{root.sentence}</span>
            </div>
          ))}
        </div>
      </Panel>
      {why && <WhyPanel namespace={why.namespace} job={why.job} lot={why.lot} />}
    </>
  );
}
