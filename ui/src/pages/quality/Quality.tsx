/** The lots whose checks failed, and the lots that are older than their inputs. */
import { AcceptLotButton } from "../../actions/lots";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { DatasetLink, JobLink, LotLink, RunLink, WorkLink } from "../../kit/links";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { Pager } from "../../kit/Pager";
import { usePagedList } from "../../kit/usePagedList";
import { PageHead, Panel, Tabs } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, Async, ProblemNote } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/format";
import { lotAddress, workAddress } from "../../router/addresses";
import { Link } from "../../router/Link";
import { address, useSearchParams, withQuery } from "../../router/router";
import { ResubmitButton } from "../../actions/work";

export default function Quality() {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "held";
  const held = useGet("/api/v1/held-lots", { query: { forChecks: true, limit: 0 } }).data
    ?.totalCount;
  return (
    <>
      <PageHead title="Checks and stale lots" />
      <Tabs
        tabs={[
          { id: "held", label: "Failed checks", count: held },
          { id: "stale", label: "Stale" },
        ]}
      />
      {tab === "held" ? <CheckHolds /> : <StaleLots />}
    </>
  );
}

type HeldLot = Schemas["HeldLot"];
const datasetOf = (lot: HeldLot) => ({ namespace: lot.namespace, name: lot.dataset });

function CheckHolds() {
  const [query] = useSearchParams();
  const namespace = query.get("namespace");
  const chosen = query.get("lot");
  const list = usePagedList(
    "/api/v1/held-lots",
    { query: { forChecks: true, ...(namespace ? { namespace } : {}) } },
    (answer) => ({ items: answer.lots, total: answer.totalCount }),
  );
  const key = (lot: HeldLot) => `${lot.namespace}/${lot.dataset}/${lot.lot}`;
  const columns: Column<HeldLot>[] = [
    {
      title: "lot",
      cell: (lot) => <LotLink dataset={datasetOf(lot)} lot={lot.lot} />,
      width: "minmax(8rem, 1fr)",
    },
    { title: "of", cell: (lot) => <DatasetLink of={datasetOf(lot)} />, width: "minmax(6rem, 1fr)" },
    {
      title: "made by",
      cell: (lot) => lot.job && <JobLink of={lot.job} />,
      width: "minmax(6rem, 0.8fr)",
      wide: true,
    },
    {
      title: "failed checks",
      cell: (lot) => <FailedChecks lot={lot} to={withQuery(query, { lot: key(lot) })} />,
      width: "minmax(8rem, 2fr)",
      wide: true,
      inBelow: true,
    },
    { title: "since", cell: (lot) => <Time at={lot.since} />, width: "84px", wide: true },
    {
      title: "",
      isAction: true,
      cell: (lot) => <AcceptLotButton lot={lot} />,
      width: "104px",
      end: true,
    },
  ];
  return (
    <div className="stack">
      <div className="filters">
        <NamespaceFilter all="all" />
      </div>
      {list.problem ? (
        <ProblemNote problem={list.problem} />
      ) : list.isReady && list.count === 0 ? (
        <EmptyState icon="check" title="No lot with failed checks">
          Add checks to an arc, or report them with a run. A lot whose checks fail is held, and no
          job reads it.
          <pre>{'checks = ["my_checks:has_every_hour"]'}</pre>
        </EmptyState>
      ) : (
        <Panel
          title="Lots whose checks failed"
          aside={`${list.countText("lot")}; accept them, or make them again`}
        >
          <Table
            columns={columns}
            label="lots with failed checks"
            count={list.count}
            row={list.row}
            onRange={list.onRange}
            isChosen={(lot) => key(lot) === chosen}
            to={(lot) => lotAddress(datasetOf(lot), lot.lot)}
            rows={12}
            below={(lot) => <FailedChecks lot={lot} to={withQuery(query, { lot: key(lot) })} />}
          />
        </Panel>
      )}
      {chosen && <CheckResults of={chosen} />}
    </div>
  );
}

/** The failed checks of a lot, with a link to all results. */
function FailedChecks({ lot, to }: { lot: HeldLot; to: string }) {
  return (
    <Link to={to} title={lot.why}>
      {lot.why || "failed checks"}
    </Link>
  );
}

/** The result of each check of a lot. */
function CheckResults({ of: chosen }: { of: string }) {
  const lot = chosen.slice(chosen.lastIndexOf("/") + 1);
  const rest = chosen.slice(0, chosen.lastIndexOf("/"));
  const namespace = rest.slice(0, rest.lastIndexOf("/"));
  const dataset = rest.slice(rest.lastIndexOf("/") + 1);
  const result = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/checks", {
    path: { namespace, dataset, lot },
  });
  return (
    <Async of={result}>
      {({ checks }) => (
        <Panel
          title={
            <>
              Checks of <span className="mono">{lot}</span>
            </>
          }
          aside={plural(checks.length, "check")}
        >
          <Rows
            of={checks}
            label="checks"
            rows={12}
            columns={[
              { title: "check", cell: (check) => check.name, width: "minmax(7rem, 1fr)" },
              {
                title: "field",
                cell: (check) => check.field ?? "–",
                width: "minmax(4rem, 0.5fr)",
                wide: true,
              },
              {
                title: "result",
                cell: (check) => (
                  <Status
                    of={check.success ? "good" : "failed"}
                    label={check.success ? "passed" : "failed"}
                  />
                ),
                width: "90px",
              },
              {
                title: "detail",
                cell: (check) => <span title={check.detail ?? ""}>{check.detail}</span>,
                width: "minmax(6rem, 2fr)",
              },
              {
                title: "run",
                cell: (check) => check.run && <RunLink of={check.run} />,
                width: "120px",
                wide: true,
              },
              { title: "when", cell: (check) => <Time at={check.at} />, width: "84px", wide: true },
            ]}
          />
        </Panel>
      )}
    </Async>
  );
}

type Work = Schemas["Work"];
const PART = 200;
const jobOf = (work: Work) => ({ namespace: work.namespace, name: work.job });

const STALE: Column<Work>[] = [
  {
    title: "lot",
    cell: (work) => <WorkLink job={jobOf(work)} lot={work.lot} />,
    width: "minmax(8rem, 1fr)",
  },
  { title: "job", cell: (work) => <JobLink of={jobOf(work)} />, width: "minmax(6rem, 1fr)" },
  { title: "now", cell: (work) => <Status of={work.state} />, width: "100px" },
  {
    title: "stale since",
    cell: (work) => <Time at={work.staleSince} />,
    width: "100px",
    wide: true,
  },
  {
    title: "run",
    cell: (work) => work.claim && <RunLink of={work.claim} />,
    width: "120px",
    wide: true,
  },
  {
    title: "",
    isAction: true,
    cell: (work) => <ResubmitButton namespace={work.namespace} job={work.job} lot={work.lot} />,
    width: "124px",
    end: true,
  },
];

function StaleLots() {
  const [query, setQuery] = useSearchParams();
  const [namespace, job] = [query.get("namespace"), query.get("job")];
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const result = useGet(
    "/api/v1/stale",
    {
      query: { limit: PART, offset, ...(namespace ? { namespace } : {}), ...(job ? { job } : {}) },
    },
    { keep: true },
  );
  return (
    <div className="stack">
      <div className="filters">
        <NamespaceFilter all="all" />
        <SearchField label="Job (full name)" name="job" />
      </div>
      <Async of={result}>
        {({ lots }) =>
          lots.length === 0 ? (
            <EmptyState
              icon="check"
              title={namespace || job || offset ? "No stale lot matches" : "No stale lot"}
            >
              Every lot was made from the newest versions of its inputs. Arcs with{" "}
              <code>stale = "rerun"</code> make stale lots again on their own.
            </EmptyState>
          ) : (
            <Panel
              title="Lots that are older than their inputs"
              aside={
                <>
                  {plural(lots.length, "lot")} here{" "}
                  <ButtonLink to={address(["replay", "new"])} icon="replay">
                    Replay in order
                  </ButtonLink>
                </>
              }
            >
              <Rows
                of={lots}
                label="stale lots"
                columns={STALE}
                to={(work) => workAddress(jobOf(work), work.lot)}
              />
              <Pager
                first="First"
                next="Next"
                onFirst={offset ? () => setQuery({ from: null }) : null}
                onNext={
                  lots.length < PART
                    ? null
                    : () => setQuery({ from: offset + PART }, { push: true })
                }
              />
            </Panel>
          )
        }
      </Async>
    </div>
  );
}
