/** A lot of a dataset: its state, its manifest, its history. */
import { EndLotHold, HoldLotButton } from "../../actions/lots";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";

import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetLink, JobLink, RunLink } from "../../kit/links";
import { usePagedList } from "../../kit/usePagedList";
import { Facts, PageHead, Panel, Tabs } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { shortDigest, plural, size } from "../../kit/format";
import { spanOf } from "../../lots/intervals";
import { LotSummary } from "../../lots/LotSummary";
import { address, useSearchParams } from "../../router/router";
import "./datasets.css";

interface Props {
  namespace?: string;
  name?: string;
  lot?: string;
}

export default function Lot({ namespace = "", name = "", lot = "" }: Props) {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "state";
  const dataset = { namespace, name };
  const path = { namespace, dataset: name, lot };
  const result = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}", { path });
  const isHeld = result.data?.status === "HOLD";
  const hold = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/hold",
    isHeld ? { path } : null,
  ).data;
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="file" size={14} /> Lot of <DatasetLink of={dataset} />
          </>
        }
        title={<span className="mono">{lot}</span>}
        copies={lot}
        actions={
          result.data && (
            <>
              <ButtonLink
                to={address(["provenance"], { namespace, dataset: name, lot })}
                icon="graph"
              >
                Provenance
              </ButtonLink>
              <ButtonLink
                to={address(["replay", "new"], { namespace, dataset: name, lot })}
                icon="replay"
              >
                Replay
              </ButtonLink>
              {isHeld ? (
                hold && <EndLotHold lot={path} hold={hold} />
              ) : (
                <HoldLotButton lot={path} />
              )}
            </>
          )
        }
      >
        {result.data && <Status of={result.data.status} />}
        <span>{spanOf(lot)}</span>
      </PageHead>
      <Tabs
        tabs={[
          { id: "state", label: "State" },
          { id: "manifest", label: "Manifest" },
          { id: "log", label: "History" },
        ]}
      />
      <div className="stack">
        {tab === "state" && <LotSummary dataset={dataset} lot={lot} />}
        {tab === "manifest" && <Manifest path={path} />}
        {tab === "log" && <History path={path} />}
      </div>
    </>
  );
}

type Path = { namespace: string; dataset: string; lot: string };

const ITEMS: Column<Schemas["ManifestItem"]>[] = [
  {
    title: "object",
    cell: (item) => (
      <span className="mono" title={item.uri}>
        {nameIn(item.uri)}
      </span>
    ),
    width: "minmax(10rem, 2fr)",
  },
  { title: "part", cell: (item) => item.part ?? "–", width: "90px", wide: true },
  {
    title: "size",
    cell: (item) => (item.size === null ? "–" : size(item.size)),
    width: "90px",
    end: true,
  },
  {
    title: "digest",
    cell: (item) => (
      <span className="mono faint" title={item.digest ?? ""}>
        {item.digest && shortDigest(item.digest)}
      </span>
    ),
    width: "200px",
    wide: true,
  },
];

function nameIn(uri: string): string {
  const at = uri.lastIndexOf("/attempt=");
  return at < 0 ? uri : uri.slice(uri.indexOf("/", at + 1) + 1);
}

function Manifest({ path }: { path: Path }) {
  const [query] = useSearchParams();
  const version = query.get("version");
  const ask = { path, query: version ? { version } : {} };
  const head = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/manifest", {
    path,
    query: { ...ask.query, limit: 0 },
  });
  const items = usePagedList(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/manifest",
    ask,
    (answer) => ({ items: answer.uris, total: answer.totalCount }),
  );
  if (head.error?.status === 404) {
    return (
      <EmptyState icon="file" title="This lot has no manifest">
        {head.error.message}
      </EmptyState>
    );
  }
  return (
    <Async of={head}>
      {(manifest) => (
        <>
          <Panel title="Manifest" aside={<Status of={manifest.state} />}>
            <div className="body">
              <Facts
                of={[
                  [
                    "Objects",
                    `${manifest.totalCount.toLocaleString("en")}, ${size(manifest.bytes)}`,
                  ],
                  ["Published", <Time at={manifest.publishedAt} full />],
                  ["Attempt", <RunLink of={manifest.attempt} />],
                  ["Digest", <span className="mono">{shortDigest(manifest.digest)}</span>],
                  ["Manifest file", <span className="mono uri">{manifest.url}</span>],
                  ["Comment", manifest.comment || "none"],
                ]}
              />
            </div>
          </Panel>
          {manifest.parts.length > 0 && (
            <Panel title="Parts" aside={plural(manifest.parts.length, "part")}>
              <Rows
                of={manifest.parts}
                label="parts"
                rows={10}
                columns={[
                  { title: "part", cell: (part) => part.part, width: "minmax(8rem, 2fr)" },
                  { title: "state", cell: (part) => <Status of={part.state} />, width: "110px" },
                  { title: "objects", cell: (part) => part.uris, width: "90px", end: true },
                  { title: "size", cell: (part) => size(part.bytes), width: "90px", end: true },
                ]}
              />
            </Panel>
          )}
          <Panel title="Objects" aside={items.countText("object")}>
            {manifest.totalCount ? (
              <Table
                columns={ITEMS}
                label="objects"
                count={items.count}
                row={items.row}
                onRange={items.onRange}
              />
            ) : (
              <EmptyState icon="empty" title="Empty on purpose: the job had nothing to write" />
            )}
          </Panel>
        </>
      )}
    </Async>
  );
}

function History({ path }: { path: Path }) {
  const log = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/log", {
    path,
    query: { limit: 500 },
  });
  return <Async of={log}>{(value) => <LogTable entries={value.entries} />}</Async>;
}

/** The history of a lot or of a job, newest first. */
export function LogTable({ entries }: { entries: readonly Schemas["Transition"][] }) {
  if (entries.length === 0) return <EmptyState icon="list" title="No history yet" />;
  return (
    <Panel title="History" aside="newest first">
      <Rows
        of={entries}
        label="history"
        columns={[
          { title: "when", cell: (entry) => <Time at={entry.at} />, width: "100px" },
          { title: "action", cell: (entry) => entry.action, width: "100px" },
          {
            title: "lot",
            cell: (entry) => <span className="mono">{entry.lot}</span>,
            width: "150px",
            wide: true,
          },
          {
            title: "of",
            cell: (entry) =>
              entry.job && entry.namespace ? (
                <JobLink of={{ namespace: entry.namespace, name: entry.job }} />
              ) : (
                entry.dataset
              ),
            width: "minmax(7rem, 1fr)",
          },
          {
            title: "became",
            cell: (entry) => (
              <>
                <span className="faint">{entry.was.toLowerCase() || "none"} → </span>
                <Status of={entry.became} />
              </>
            ),
            width: "180px",
          },
          { title: "who", cell: (entry) => entry.who, width: "110px", wide: true },
          {
            title: "why",
            cell: (entry) => <span title={entry.why}>{entry.why}</span>,
            width: "minmax(7rem, 2fr)",
            wide: true,
          },
        ]}
      />
    </Panel>
  );
}
