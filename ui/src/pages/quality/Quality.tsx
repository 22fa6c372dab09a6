/** Lots that checks hold, and lots that were made from what has changed since. */
import { AcceptLot } from "../../actions/lots";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { DatasetName, JobName, LotName, RunName, WorkName } from "../../kit/Names";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { Pager } from "../../kit/Pager";
import { usePages } from "../../kit/pages";
import { PageHead, Panel, Tabs } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Shown, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/words";
import { lotPlace, workPlace } from "../../router/places";
import { Link } from "../../router/Link";
import { address, useQuery, withQuery } from "../../router/router";
import { MakeAgain } from "./actions";

export default function Quality() {
  const [query] = useQuery();
  const tab = query.get("tab") ?? "held";
  const held = useGet("/api/v1/held-lots", { query: { forChecks: true, limit: 0 } }).value?.totalCount;
  return (
    <>
      <PageHead title="Checks and stale lots" />
      <Tabs
        tabs={[
          { id: "held", label: "Held by checks", count: held },
          { id: "stale", label: "Stale" },
        ]}
      />
      {tab === "held" ? <HeldByChecks /> : <Stale />}
    </>
  );
}

type HeldLot = Schemas["HeldLot"];
const datasetOf = (lot: HeldLot) => ({ namespace: lot.namespace, name: lot.dataset });

function HeldByChecks() {
  const [query] = useQuery();
  const namespace = query.get("namespace");
  const chosen = query.get("lot");
  const list = usePages("/api/v1/held-lots", { query: { forChecks: true, ...(namespace ? { namespace } : {}) } }, (answer) => ({ items: answer.lots, total: answer.totalCount }));
  const key = (lot: HeldLot) => `${lot.namespace}/${lot.dataset}/${lot.lot}`;
  const columns: Column<HeldLot>[] = [
    { title: "lot", cell: (lot) => <LotName dataset={datasetOf(lot)} lot={lot.lot} />, width: "minmax(8rem, 1fr)" },
    { title: "of", cell: (lot) => <DatasetName of={datasetOf(lot)} />, width: "minmax(6rem, 1fr)" },
    { title: "made by", cell: (lot) => lot.job && <JobName of={lot.job} />, width: "minmax(6rem, 0.8fr)", wide: true },
    { title: "what failed", cell: (lot) => <Failed lot={lot} to={withQuery(query, { lot: key(lot) })} />, width: "minmax(8rem, 2fr)", wide: true, told: true },
    { title: "since", cell: (lot) => <Time at={lot.since} />, width: "84px", wide: true },
    { title: "", acts: true, cell: (lot) => <AcceptLot lot={lot} />, width: "104px", end: true },
  ];
  return (
    <div className="stack">
      <div className="filters">
        <NamespaceFilter all="all" />
      </div>
      {list.problem ? (
        <Trouble problem={list.problem} />
      ) : list.isReady && list.count === 0 ? (
        <Empty icon="check" title="No lot is held by its checks">
          Give an arc checks, or report them with a run: what fails is held here, and nobody reads it.
          <pre>{'checks = ["my_checks:has_every_hour"]'}</pre>
        </Empty>
      ) : (
        <Panel title="Lots whose checks failed" aside={`${list.said("lot")}; accept them, or make them again`}>
          <Table columns={columns} label="lots held by checks" count={list.count} row={list.row} onRange={list.onRange} isChosen={(lot) => key(lot) === chosen} to={(lot) => lotPlace(datasetOf(lot), lot.lot)} rows={12} below={(lot) => <Failed lot={lot} to={withQuery(query, { lot: key(lot) })} />} />
        </Panel>
      )}
      {chosen && <Checks of={chosen} />}
    </div>
  );
}

/** What failed, and the way to what each check said. */
function Failed({ lot, to }: { lot: HeldLot; to: string }) {
  return (
    <Link to={to} title={lot.why}>
      {lot.why || "its checks"}
    </Link>
  );
}

/** What each check said about one lot. */
function Checks({ of: chosen }: { of: string }) {
  const lot = chosen.slice(chosen.lastIndexOf("/") + 1);
  const rest = chosen.slice(0, chosen.lastIndexOf("/"));
  const namespace = rest.slice(0, rest.lastIndexOf("/"));
  const dataset = rest.slice(rest.lastIndexOf("/") + 1);
  const found = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/checks", { path: { namespace, dataset, lot } });
  return (
    <Shown of={found}>
      {({ checks }) => (
        <Panel title={<>What checks said of <span className="mono">{lot}</span></>} aside={plural(checks.length, "check")}>
          <Rows
            of={checks}
            label="checks"
            rows={12}
            columns={[
              { title: "check", cell: (check) => check.name, width: "minmax(7rem, 1fr)" },
              { title: "field", cell: (check) => check.field ?? "–", width: "minmax(4rem, 0.5fr)", wide: true },
              { title: "said", cell: (check) => <Status of={check.success ? "good" : "failed"} label={check.success ? "passed" : "failed"} />, width: "90px" },
              { title: "detail", cell: (check) => <span title={check.detail ?? ""}>{check.detail}</span>, width: "minmax(6rem, 2fr)" },
              { title: "run", cell: (check) => check.run && <RunName of={check.run} />, width: "120px", wide: true },
              { title: "when", cell: (check) => <Time at={check.at} />, width: "84px", wide: true },
            ]}
          />
        </Panel>
      )}
    </Shown>
  );
}

type Work = Schemas["Work"];
const PART = 200;
const jobOf = (work: Work) => ({ namespace: work.namespace, name: work.job });

const STALE: Column<Work>[] = [
  { title: "lot", cell: (work) => <WorkName job={jobOf(work)} lot={work.lot} />, width: "minmax(8rem, 1fr)" },
  { title: "job", cell: (work) => <JobName of={jobOf(work)} />, width: "minmax(6rem, 1fr)" },
  { title: "now", cell: (work) => <Status of={work.state} />, width: "100px" },
  { title: "stale since", cell: (work) => <Time at={work.staleSince} />, width: "100px", wide: true },
  { title: "run", cell: (work) => work.claim && <RunName of={work.claim} />, width: "120px", wide: true },
  { title: "", acts: true, cell: (work) => <MakeAgain work={work} />, width: "124px", end: true },
];

function Stale() {
  const [query, setQuery] = useQuery();
  const [namespace, job] = [query.get("namespace"), query.get("job")];
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const found = useGet("/api/v1/stale", { query: { limit: PART, offset, ...(namespace ? { namespace } : {}), ...(job ? { job } : {}) } }, { keep: true });
  return (
    <div className="stack">
      <div className="filters">
        <NamespaceFilter all="all" />
        <SearchField label="Job (whole name)" name="job" />
      </div>
      <Shown of={found}>
        {({ lots }) =>
          lots.length === 0 ? (
            <Empty icon="check" title={namespace || job || offset ? "Nothing like that is stale" : "Nothing is stale"}>
              Everything was made from the newest version of what it reads. Arcs with <code>stale = "rerun"</code> follow by themselves.
            </Empty>
          ) : (
            <Panel title="Made from what has changed since" aside={<>{plural(lots.length, "lot")} here <ButtonLink to={address(["replay", "new"])} icon="replay">Replay in order</ButtonLink></>}>
              <Rows of={lots} label="stale lots" columns={STALE} to={(work) => workPlace(jobOf(work), work.lot)} />
              <Pager first="First" next="Next" onFirst={offset ? () => setQuery({ from: null }) : null} onNext={lots.length < PART ? null : () => setQuery({ from: offset + PART }, { push: true })} />
            </Panel>
          )
        }
      </Shown>
    </div>
  );
}
