/** One version of a lot: who made it and when, its files and their digests, the deposits behind it. */
import type { Schemas } from "../../api/client";
import { JobName, LotName, RunName } from "../../kit/Names";
import { Facts, Panel } from "../../kit/Panel";
import { Empty } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, size, span } from "../../kit/words";
import { BatchName, CollectionName, IngestJobName } from "../ingest/names";

type LotVersion = Schemas["LotVersion"];

const FILES: Column<Schemas["File"]>[] = [
  { title: "file", cell: (file) => <span className="mono" title={file.uri}>{file.uri.slice(file.uri.lastIndexOf("/") + 1)}</span>, width: "minmax(7rem, 1.4fr)" },
  { title: "part", cell: (file) => file.part ?? "–", width: "64px", wide: true },
  { title: "size", cell: (file) => (file.size === null ? "–" : size(file.size)), width: "70px", end: true },
  { title: "digest", cell: (file) => <span className="mono faint" title={file.digest ?? ""}>{file.digest ?? "none"}</span>, width: "minmax(6rem, 1.4fr)" },
];

export function Version({ of: version }: { of: LotVersion }) {
  const { run, contents, outside } = version;
  return (
    <div className="stack">
      <Panel
        title={
          <>
            {version.dataset} <span className="mono">{version.lot}</span> V{version.number}
          </>
        }
        aside={contents && <Status of={contents.state} />}
      >
        <div className="body">
          <Facts
            of={[
              ["Lot", version.lot && <LotName dataset={{ namespace: version.namespace, name: version.dataset }} lot={version.lot} />],
              ["Published", <Time at={version.publishedAt} full />],
              ["Version", <span className="mono">{version.id}</span>],
              ...(run ? ofRun(run) : []),
              ...(outside ? ([["Registered", outside.registeredBy ? <>by {outside.registeredBy} <Time at={outside.registeredAt} /></> : "no"], ["Arrived objects", count(outside.arrivedCount)]] as const) : []),
              ["Manifest digest", contents && <span className="mono">{contents.digest}</span>],
            ]}
          />
        </div>
      </Panel>
      {contents && (
        <Panel title="Files" aside={`${plural(contents.totalCount, "file")}, ${size(contents.bytes)}${contents.files.length < contents.totalCount ? `; the first ${contents.files.length} here` : ""}`}>
          {contents.error ? <Empty icon="alert" title="The files cannot be shown">{contents.error}</Empty> : contents.files.length ? <Rows of={contents.files} label="files" columns={FILES} rows={10} /> : <Empty icon="empty" title="Rightly empty: there was nothing to write" />}
        </Panel>
      )}
      {version.deposits.map((deposit) => (
        <Deposit key={deposit.batch} of={deposit} />
      ))}
      {outside && outside.arrived.length > 0 && (
        <Panel title="What arrived" aside={plural(outside.arrivedCount, "object")}>
          <Rows
            of={outside.arrived}
            label="what arrived"
            rows={8}
            columns={[
              { title: "object", cell: (each) => <span className="mono" title={each.uri}>{each.uri.slice(each.uri.lastIndexOf("/") + 1)}</span>, width: "minmax(7rem, 1.4fr)" },
              { title: "size", cell: (each) => size(each.size), width: "70px", end: true },
              { title: "mark", cell: (each) => <span className="mono faint" title={each.mark}>{each.mark}</span>, wide: true },
              { title: "seen", cell: (each) => <Time at={each.seenAt} />, width: "84px" },
            ]}
          />
        </Panel>
      )}
    </div>
  );
}

function ofRun(run: Schemas["Maker"]): readonly (readonly [string, React.ReactNode])[] {
  return [
    ["Made by", <JobName of={run.job} whole />],
    ["Run", <RunName of={run.id} />],
    ["Took", run.durationMs === null ? null : span(run.durationMs / 1000)],
    ["Worker", run.owner],
    ["Try", run.attempt],
    ["Parts", count(run.parts)],
    ["Job version", run.jobVersion && <span className="mono">{run.jobVersion.slice(0, 8)}</span>],
    ["Code", run.location],
  ];
}

function Deposit({ of: deposit }: { of: Schemas["Deposit"] }) {
  return (
    <Panel title={<>Deposited as <BatchName of={deposit.batch} /></>} aside={<>by {deposit.depositor ?? "somebody"} to <CollectionName of={deposit.collection} /></>}>
      <Rows
        of={deposit.objects}
        label={`objects of ${deposit.batch}`}
        rows={8}
        columns={[
          { title: "object", cell: (each) => <span className="mono" title={each.ark}>{each.ark}{each.objectVersion === null ? "" : `, version ${each.objectVersion}`}</span>, width: "minmax(8rem, 1.4fr)" },
          { title: "job", cell: (each) => each.ingestJob && <IngestJobName of={each.ingestJob} />, width: "118px" },
          { title: "digest of its inventory", cell: (each) => <span className="mono faint" title={each.digest ?? ""}>{each.digest}</span>, width: "minmax(5rem, 1fr)", wide: true },
        ]}
      />
    </Panel>
  );
}
