/** The gaps in the lots of a dataset, their causes, and a backfill of them. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { DatasetLink, JobLink, LotLink } from "../../kit/links";
import { TargetPicker } from "../../kit/TargetPicker";
import { PageHead, Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/format";
import { HeatGrid } from "../../lots/HeatGrid";
import { spanOf, startOf } from "../../lots/intervals";
import { Link } from "../../router/Link";
import { gapsAddress } from "../../router/addresses";
import { useSearchParams, withQuery } from "../../router/router";
import { WhyPanel } from "../jobs/Why";
import "../jobs/jobs.css";
import { GapBackfill } from "./GapBackfill";

type Gap = Schemas["Gap"];

export default function Gaps() {
  const [query] = useSearchParams();
  const [namespace, dataset] = [query.get("namespace"), query.get("dataset")];
  return (
    <>
      <PageHead title="Gaps">
        {namespace && dataset && <DatasetLink of={{ namespace, name: dataset }} whole />}
      </PageHead>
      <TargetPicker
        kind="dataset"
        fields={[
          { name: "from", label: "From", hint: "first lot" },
          { name: "to", label: "To", hint: "now" },
        ]}
        verb="Find gaps"
      />
      {namespace && dataset ? (
        <DatasetGaps key={`${namespace}/${dataset}`} namespace={namespace} dataset={dataset} />
      ) : (
        <>
          <EmptyState icon="search" title="Choose a dataset">
            Its lots must be intervals, such as 20261115PT1H09. A range is given as two lots, or two
            times such as 2026-11-15.
          </EmptyState>
          <LateDatasets />
        </>
      )}
    </>
  );
}

/** The datasets with a gap at their end, which is the usual reason to open this page. */
function LateDatasets() {
  const late = useGet("/api/v1/standing", {}).data?.late ?? [];
  if (late.length === 0) return null;
  return (
    <Panel title="Late now" aside={`${plural(late.length, "dataset")}, newest first`}>
      <Rows
        of={late}
        label="late datasets"
        to={(each) => gapsAddress({ namespace: each.namespace, name: each.dataset }, each.first)}
        columns={[
          {
            title: "dataset",
            cell: (each) => (
              <Link
                className="name"
                to={gapsAddress({ namespace: each.namespace, name: each.dataset }, each.first)}
              >
                {each.dataset}
              </Link>
            ),
            width: "minmax(8rem, 1.4fr)",
          },
          { title: "namespace", cell: (each) => each.namespace, wide: true },
          { title: "lots", cell: (each) => count(each.count), width: "64px", end: true },
          {
            title: "from",
            cell: (each) => <span className="mono">{each.first}</span>,
            width: "150px",
            wide: true,
          },
          { title: "since", cell: (each) => <Time at={each.since} />, width: "100px" },
        ]}
      />
    </Panel>
  );
}

/** The gaps of a dataset, if its lots are intervals. */
function DatasetGaps({ namespace, dataset }: { namespace: string; dataset: string }) {
  const standing = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/standing", {
    path: { namespace, dataset },
  });
  return (
    <Async of={standing}>
      {({ interval }) =>
        interval ? (
          <GapReport namespace={namespace} dataset={dataset} />
        ) : (
          <EmptyState icon="table" title="The lots are not intervals">
            Lots with free names have no sequence, so none can be missing.{" "}
            <DatasetLink of={{ namespace, name: dataset }} /> lists the existing ones.
          </EmptyState>
        )
      }
    </Async>
  );
}

function GapReport({ namespace, dataset }: { namespace: string; dataset: string }) {
  const [query, setQuery] = useSearchParams();
  const [from, to, chosen] = [query.get("from"), query.get("to"), query.get("range")];
  const gaps = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps",
    { path: { namespace, dataset }, query: { ...(from ? { from } : {}), ...(to ? { to } : {}) } },
    { keep: true },
  );
  const id = { namespace, name: dataset };
  const columns: Column<Gap>[] = [
    { title: "kind", cell: (gap) => <Status of={gap.kind} />, width: "104px" },
    {
      title: "first",
      cell: (gap) => (
        <Link className="name mono" to={withQuery(query, { range: gap.first })}>
          {gap.first}
        </Link>
      ),
      width: "minmax(8.5rem, 0.8fr)",
    },
    {
      title: "last",
      cell: (gap) => <span className="mono">{gap.last === gap.first ? "" : gap.last}</span>,
      width: "minmax(8.5rem, 0.8fr)",
      wide: true,
    },
    { title: "lots", cell: (gap) => count(gap.count), width: "64px", end: true },
    {
      title: "cause",
      cell: (gap) => <span title={gap.cause?.sentence}>{gap.cause?.sentence}</span>,
      width: "minmax(7rem, 2.4fr)",
      wide: true,
    },
  ];
  return (
    <Async of={gaps}>
      {(value) => {
        const gap =
          value.ranges.find((each) => each.first === chosen) ?? gapAround(value.ranges, chosen);
        return (
          <div className="stack">
            <Panel
              title="Lots"
              aside={`${count(value.there)} of ${plural(value.count, "lot")} of ${value.interval} are there`}
            >
              <HeatGrid
                interval={value.interval}
                first={value.first}
                count={value.count}
                ranges={value.ranges}
                totals={value.totals}
                there={value.there}
                isCut={value.isCut}
                chosen={chosen}
                onChoose={(lot) => setQuery({ range: lot })}
              />
            </Panel>
            {value.ranges.length === 0 ? (
              <EmptyState icon="check" title="No gap">
                Every lot between {value.first} and {value.last} is there.
              </EmptyState>
            ) : (
              <Panel
                title="Gaps"
                aside={`${plural(value.ranges.length, "range")}${value.isCut ? ` listed; there are more after ${value.ranges.at(-1)?.last}` : ""}`}
              >
                <Rows
                  of={value.ranges}
                  label="gaps"
                  columns={columns}
                  rows={12}
                  isChosen={(each) => each === gap}
                  to={(each) => `/gaps${withQuery(query, { range: each.first })}`}
                />
              </Panel>
            )}
            {chosen && !gap && (
              <Panel title={<span className="mono">{chosen}</span>} aside={spanOf(chosen)}>
                {value.isCut && isAfter(chosen, value.ranges.at(-1)?.last) ? (
                  <p className="body">
                    This lot is not listed: there are too many ranges before it.{" "}
                    <Link to={withQuery(query, { from: chosen, range: null })}>
                      Start from this lot
                    </Link>
                    .
                  </p>
                ) : (
                  <p className="body">
                    <Status of="there" /> <LotLink dataset={id} lot={chosen} />
                  </p>
                )}
              </Panel>
            )}
            {gap && <GapCause gap={gap} />}
            <GapBackfill
              key={`${gap?.first ?? ""}`}
              dataset={id}
              first={gap?.first ?? value.first}
              last={gap?.last ?? value.last}
              isAll={!gap}
            />
          </div>
        );
      }}
    </Async>
  );
}

function isAfter(lot: string, other: string | undefined): boolean {
  return (startOf(lot) ?? 0) > (startOf(other ?? "") ?? Infinity);
}

/** Find the gap that contains a lot. */
function gapAround(ranges: readonly Gap[], lot: string | null): Gap | undefined {
  const at = lot ? startOf(lot) : null;
  if (at === null) return undefined;
  return ranges.find(
    (gap) => (startOf(gap.first) ?? Infinity) <= at && at <= (startOf(gap.last) ?? -Infinity),
  );
}

/** The cause of a gap: why its first lot is missing, and which lots have to come first. */
function GapCause({ gap }: { gap: Gap }) {
  const why = gap.cause?.why;
  return (
    <>
      <Panel
        title={
          <>
            Why <span className="mono">{gap.first}</span> is {gap.kind}
          </>
        }
        aside={
          gap.count > 1
            ? `the first of ${plural(gap.count, "lot")} until ${gap.last}`
            : spanOf(gap.first)
        }
      >
        <div className="body stack">
          {!why && <p>{gap.cause?.sentence ?? "The cause is unknown."}</p>}
          {why && gap.cause?.roots.length === 0 && <p>See the chain below.</p>}
          {gap.cause?.roots.map((root) => (
            <div key={`${root.namespace}/${root.dataset}/${root.lot}`} className="row">
              <span className="faint">First needs</span>
              <LotLink dataset={{ namespace: root.namespace, name: root.dataset }} lot={root.lot} />
              <span className="faint">of</span>
              <DatasetLink of={{ namespace: root.namespace, name: root.dataset }} />
              {root.job ? (
                <span>
                  <span className="faint">by</span> <JobLink of={root.job} />
                </span>
              ) : (
                <span className="muted">which comes from outside: no job here makes it</span>
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
