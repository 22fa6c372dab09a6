/** The stored objects, newest first, with their rate; or one object with its files. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Bars } from "../../kit/Bars";
import { RunLink } from "../../kit/links";
import { Pager } from "../../kit/Pager";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { type Column, Rows } from "../../kit/Table";
import { Time, useNow } from "../../kit/Time";
import { count, plural, size } from "../../kit/format";
import { Link } from "../../router/Link";
import { objectAddress } from "../../router/addresses";
import { address, useSearchParams } from "../../router/router";
import { BatchLink, IngestJobLink } from "./links";

type ObjectVersion = Schemas["StoredObject"];
const PART = 1000;
const MINUTE_MS = 60_000;
const MINUTES = 60;

const COLUMNS: Column<ObjectVersion>[] = [
  {
    title: "object",
    cell: (each) => (
      <Link to={objectAddress(each.ark, each.version)} className="mono" title={each.ark}>
        {each.ark}
      </Link>
    ),
    width: "minmax(10rem, 1.2fr)",
  },
  { title: "version", cell: (each) => each.version, width: "64px", end: true, wide: true },
  {
    title: "title",
    cell: (each) => <span title={each.title}>{each.title}</span>,
    width: "minmax(6rem, 1fr)",
    wide: true,
  },
  { title: "files", cell: (each) => count(each.files), width: "60px", end: true, wide: true },
  { title: "bytes", cell: (each) => size(each.bytes), width: "80px", end: true },
  { title: "batch", cell: (each) => <BatchLink of={each.batch} />, width: "120px", wide: true },
  { title: "job", cell: (each) => <IngestJobLink of={each.job} />, width: "120px", wide: true },
  { title: "run", cell: (each) => <RunLink of={each.runId} />, width: "120px", wide: true },
  { title: "stored", cell: (each) => <Time at={each.at} />, width: "84px" },
];

export function StoredTab({ collection }: { collection?: string }) {
  const [query] = useSearchParams();
  const ark = query.get("ark");
  return ark ? (
    <StoredObject ark={ark} />
  ) : (
    <StoredObjects {...(collection ? { collection } : {})} />
  );
}

type ObjectFile = Schemas["ObjectFile"];

const FILE_COLUMNS: Column<ObjectFile>[] = [
  {
    title: "file",
    cell: (each) => (
      <span className="mono" title={each.name}>
        {each.name}
      </span>
    ),
    width: "minmax(10rem, 1fr)",
  },
  {
    title: "bytes",
    cell: (each) => (each.size === null ? <span className="bad">missing</span> : size(each.size)),
    width: "90px",
    end: true,
  },
  {
    title: "SHA-512",
    cell: (each) => (
      <span className="mono" title={each.sha512}>
        {each.sha512}
      </span>
    ),
    width: "minmax(8rem, 1fr)",
    wide: true,
  },
];

/** The versions of an object, and the files of the version in the address or of the newest. */
function StoredObject({ ark }: { ark: string }) {
  const [query] = useSearchParams();
  const versions = useGet("/api/v1/ingest/objects/versions", { query: { ark } });
  const version = Number(query.get("version")) || undefined;
  const files = useGet("/api/v1/ingest/objects/files", {
    query: { ark, ...(version ? { version } : {}) },
  });
  return (
    <>
      <p>
        <Link to={address(["ingest"], { tab: "stored" })}>All stored objects</Link>
      </p>
      <Async of={versions}>
        {(value) => (
          <Panel title={`Versions of ${ark}`} aside="newest first">
            <Rows of={value.versions} label="versions of the object" columns={COLUMNS} />
          </Panel>
        )}
      </Async>
      <Async of={files}>
        {(value) => (
          <Panel
            title={version ? `Files of version ${version}` : "Files of the newest version"}
            aside={plural(value.files.length, "file")}
          >
            <Rows of={value.files} label="files of the object" columns={FILE_COLUMNS} />
          </Panel>
        )}
      </Async>
    </>
  );
}

function StoredObjects({ collection }: { collection?: string }) {
  const [query, setQuery] = useSearchParams();
  const before = query.get("stored");
  const ask = { limit: PART, ...(collection ? { collection } : {}) };
  const result = useGet(
    "/api/v1/ingest/objects",
    { query: { ...ask, ...(before ? { before } : {}) } },
    { keep: true },
  );
  return (
    <Async of={result}>
      {(value) =>
        value.objects.length === 0 ? (
          <EmptyState icon="file" title="No stored object yet">
            A job stores its object before the stage “recording” ends.
          </EmptyState>
        ) : (
          <>
            {!before && <Throughput objects={value.objects} isCut={value.next !== null} />}
            <Panel
              title="Stored objects"
              aside={before ? `before ${before.slice(0, 19)}` : "newest first"}
            >
              <Rows of={value.objects} label="stored objects" columns={COLUMNS} />
              <Pager
                onFirst={before ? () => setQuery({ stored: null }) : null}
                onNext={value.next ? () => setQuery({ stored: value.next }, { push: true }) : null}
              />
            </Panel>
          </>
        )
      }
    </Async>
  );
}

/** Objects stored in each minute of the last hour. */
function Throughput({ objects, isCut }: { objects: readonly ObjectVersion[]; isCut: boolean }) {
  const now = useNow();
  const first = Math.floor(now / MINUTE_MS) - MINUTES + 1;
  const counts = new Array<number>(MINUTES).fill(0);
  let bytes = 0;
  let sum = 0;
  for (const each of objects) {
    const minute = Math.floor(Date.parse(each.at) / MINUTE_MS) - first;
    if (minute < 0 || minute >= MINUTES) continue;
    counts[minute] = (counts[minute] ?? 0) + 1;
    bytes += each.bytes;
    sum += 1;
  }
  const atLeast = isCut && sum === objects.length ? "at least " : "";
  return (
    <Panel
      title="Objects stored per minute"
      aside={`${atLeast}${plural(sum, "object")}, ${size(bytes)} in the last hour`}
    >
      <Bars
        label="objects stored in each minute of the last hour"
        bars={counts.map((value, minute) => ({
          label: `${new Date((first + minute) * MINUTE_MS).toISOString().slice(11, 16)} UTC`,
          parts: [{ tone: "good", word: "stored", value }],
        }))}
      />
    </Panel>
  );
}
