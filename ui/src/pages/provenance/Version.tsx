/** A version of a lot: its run, its files with digests, its deposits. */
import type { Schemas } from "../../api/client";
import { JobLink, LotLink, RunLink } from "../../kit/links";
import { Facts, Panel } from "../../kit/Panel";
import { EmptyState } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, size, span } from "../../kit/format";
import { BatchLink, CollectionLink, IngestJobLink } from "../ingest/links";

type LotVersion = Schemas["LotVersion"];

const FILES: Column<Schemas["File"]>[] = [
  {
    title: "file",
    cell: (file) => (
      <span className="mono" title={file.uri}>
        {file.uri.slice(file.uri.lastIndexOf("/") + 1)}
      </span>
    ),
    width: "minmax(7rem, 1.4fr)",
  },
  { title: "part", cell: (file) => file.part ?? "–", width: "64px", wide: true },
  {
    title: "size",
    cell: (file) => (file.size === null ? "–" : size(file.size)),
    width: "70px",
    end: true,
  },
  {
    title: "digest",
    cell: (file) => (
      <span className="mono faint" title={file.digest ?? ""}>
        {file.digest ?? "none"}
      </span>
    ),
    width: "minmax(6rem, 1.4fr)",
  },
];

export function VersionDetails({ of: version }: { of: LotVersion }) {
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
              [
                "Lot",
                version.lot && (
                  <LotLink
                    dataset={{ namespace: version.namespace, name: version.dataset }}
                    lot={version.lot}
                  />
                ),
              ],
              ["Published", <Time at={version.publishedAt} full />],
              ["Version", <span className="mono">{version.id}</span>],
              ...(run ? runFacts(run) : []),
              ...(outside
                ? ([
                    [
                      "Registered",
                      outside.registeredBy ? (
                        <>
                          by {outside.registeredBy} <Time at={outside.registeredAt} />
                        </>
                      ) : (
                        "no"
                      ),
                    ],
                    ["Arrived objects", count(outside.arrivedCount)],
                  ] as const)
                : []),
              ["Manifest digest", contents && <span className="mono">{contents.digest}</span>],
            ]}
          />
        </div>
      </Panel>
      {contents && (
        <Panel
          title="Files"
          aside={`${plural(contents.totalCount, "file")}, ${size(contents.bytes)}${contents.files.length < contents.totalCount ? `; the first ${contents.files.length} here` : ""}`}
        >
          {contents.error ? (
            <EmptyState icon="alert" title="The files could not be read">
              {contents.error}
            </EmptyState>
          ) : contents.files.length ? (
            <Rows of={contents.files} label="files" columns={FILES} rows={10} />
          ) : (
            <EmptyState icon="empty" title="Empty on purpose: the job had nothing to write" />
          )}
        </Panel>
      )}
      {version.deposits.map((deposit) => (
        <DepositPanel key={deposit.batch} of={deposit} />
      ))}
      {outside && outside.arrived.length > 0 && (
        <Panel title="Arrived objects" aside={plural(outside.arrivedCount, "object")}>
          <Rows
            of={outside.arrived}
            label="arrived objects"
            rows={8}
            columns={[
              {
                title: "object",
                cell: (each) => (
                  <span className="mono" title={each.uri}>
                    {each.uri.slice(each.uri.lastIndexOf("/") + 1)}
                  </span>
                ),
                width: "minmax(7rem, 1.4fr)",
              },
              { title: "size", cell: (each) => size(each.size), width: "70px", end: true },
              {
                title: "mark",
                cell: (each) => (
                  <span className="mono faint" title={each.mark}>
                    {each.mark}
                  </span>
                ),
                wide: true,
              },
              { title: "seen", cell: (each) => <Time at={each.seenAt} />, width: "84px" },
            ]}
          />
        </Panel>
      )}
    </div>
  );
}

function runFacts(run: Schemas["Maker"]): readonly (readonly [string, React.ReactNode])[] {
  return [
    ["Made by", <JobLink of={run.job} whole />],
    ["Run", <RunLink of={run.id} />],
    ["Took", run.durationMs === null ? null : span(run.durationMs / 1000)],
    ["Worker", run.owner],
    ["Try", run.attempt],
    ["Parts", count(run.parts)],
    ["Job version", run.jobVersion && <span className="mono">{run.jobVersion.slice(0, 8)}</span>],
    ["Code", run.location],
  ];
}

function DepositPanel({ of: deposit }: { of: Schemas["Deposit"] }) {
  return (
    <Panel
      title={
        <>
          Deposited as <BatchLink of={deposit.batch} />
        </>
      }
      aside={
        <>
          by {deposit.depositor ?? "unknown"} to <CollectionLink of={deposit.collection} />
        </>
      }
    >
      <Rows
        of={deposit.objects}
        label={`objects of ${deposit.batch}`}
        rows={8}
        columns={[
          {
            title: "object",
            cell: (each) => (
              <span className="mono" title={each.ark}>
                {each.ark}
                {each.objectVersion === null ? "" : `, version ${each.objectVersion}`}
              </span>
            ),
            width: "minmax(8rem, 1.4fr)",
          },
          {
            title: "job",
            cell: (each) => each.ingestJob && <IngestJobLink of={each.ingestJob} />,
            width: "118px",
          },
          {
            title: "digest of the inventory",
            cell: (each) => (
              <span className="mono faint" title={each.digest ?? ""}>
                {each.digest}
              </span>
            ),
            width: "minmax(5rem, 1fr)",
            wide: true,
          },
        ]}
      />
    </Panel>
  );
}
