/** The versions of a dataset, and two schemas side by side. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { DatasetLink, JobLink, RunLink } from "../../kit/links";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status, Tag } from "../../kit/Status";
import type { Tone } from "../../kit/states";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { useSearchParams } from "../../router/router";
import { fieldsOf } from "../runs/facets";
import { type Change, compare, changeLabels } from "./schema";

type Version = Schemas["DatasetVersion"];
type Key = Schemas["InputField"];
const TONES: Readonly<Record<Change, Tone>> = {
  added: "good",
  removed: "bad",
  changed: "warn",
  same: "none",
};
const LISTED = 200;

export function Versions({ dataset }: { dataset: Schemas["Dataset"] }) {
  const path = { namespace: dataset.id.namespace, dataset: dataset.id.name };
  const result = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/versions", {
    path,
    query: { limit: LISTED },
  });
  return (
    <Async of={result}>
      {(value) =>
        value.versions.length === 0 ? (
          <EmptyState icon="table" title="No version yet">
            A run that writes the dataset creates a version, and so does a declared schema.
          </EmptyState>
        ) : (
          <VersionComparison
            versions={value.versions}
            total={value.totalCount}
            keys={dataset.indirectInputFields}
          />
        )
      }
    </Async>
  );
}

function VersionComparison({
  versions,
  total,
  keys,
}: {
  versions: readonly Version[];
  total: number;
  keys: readonly Key[];
}) {
  const [query, setQuery] = useSearchParams();
  const numbered = new Map(versions.map((version) => [version.number, version]));
  const after = numbered.get(Number(query.get("to"))) ?? versions[0];
  const before =
    numbered.get(Number(query.get("from"))) ?? (after && numbered.get(after.number - 1));
  const changes = (version: Version) => {
    const previous = numbered.get(version.number - 1);
    return previous
      ? changeLabels(compare(fieldsOf(previous.fields), fieldsOf(version.fields)))
      : [];
  };
  const columns: Column<Version>[] = [
    {
      title: "version",
      cell: (version) => (
        <button
          type="button"
          className="link"
          onClick={() => setQuery({ to: version.number, from: null })}
        >
          V{version.number}
        </button>
      ),
      width: "70px",
    },
    {
      title: "state",
      cell: (version) =>
        version.isCurrent ? (
          <Tag tone="good">current</Tag>
        ) : version.createdByRun ? (
          <Status of={version.createdByRun.state} />
        ) : (
          <Tag>declared</Tag>
        ),
      width: "110px",
    },
    {
      title: "schema change",
      cell: (version) =>
        changes(version).map((each) => (
          <Tag key={each.text} tone={TONES[each.change]}>
            {each.text}
          </Tag>
        )),
      width: "minmax(8rem, 2fr)",
    },
    {
      title: "made by",
      cell: (version) => version.createdByRun && <JobLink of={version.createdByRun.job} />,
      wide: true,
    },
    {
      title: "run",
      cell: (version) => version.createdByRun && <RunLink of={version.createdByRun.id} />,
      width: "120px",
      wide: true,
    },
    { title: "made", cell: (version) => <Time at={version.createdAt} />, width: "110px" },
  ];
  return (
    <>
      {after && <SchemaPanel after={after} before={before} versions={versions} />}
      {keys.length > 0 && <KeysPanel keys={keys} />}
      <Panel
        title="Versions"
        aside={
          total > versions.length ? `the newest ${versions.length} of ${total}` : `${total} in all`
        }
      >
        <Rows
          of={versions}
          columns={columns}
          label="versions"
          rows={12}
          isChosen={(version) => version.number === after?.number}
        />
      </Panel>
    </>
  );
}

/** The fields that decide which rows the dataset has, but give it no values. */
function KeysPanel({ keys }: { keys: readonly Key[] }) {
  const columns: Column<Key>[] = [
    {
      title: "field",
      cell: (key) => <span className="mono">{key.field}</span>,
      width: "minmax(6rem, 1fr)",
    },
    {
      title: "of dataset",
      cell: (key) => <DatasetLink of={{ namespace: key.namespace, name: key.dataset }} />,
      width: "minmax(8rem, 2fr)",
    },
    {
      title: "used as",
      cell: (key) => (
        <span className="mono">{key.transformationType?.toLowerCase().replaceAll("_", " ")}</span>
      ),
      width: "minmax(6rem, 1fr)",
    },
    {
      title: "description",
      cell: (key) => key.transformationDescription,
      width: "minmax(6rem, 2fr)",
      wide: true,
    },
  ];
  return (
    <Panel title="Keys of joins, filters and sorts" aside="every field depends on them">
      <Rows of={keys} columns={columns} label="keys of joins, filters and sorts" rows={8} />
    </Panel>
  );
}

function SchemaPanel({
  after,
  before,
  versions,
}: {
  after: Version;
  before: Version | undefined;
  versions: readonly Version[];
}) {
  const [, setQuery] = useSearchParams();
  const compared = compare(before ? fieldsOf(before.fields) : [], fieldsOf(after.fields));
  const choose = (name: "from" | "to", version: Version | undefined) => (
    <select
      className="field"
      aria-label={name === "from" ? "the older version" : "the newer version"}
      value={version?.number ?? ""}
      onChange={(event) => setQuery({ [name]: event.target.value })}
    >
      {!version && <option value="">none</option>}
      {versions.map((each) => (
        <option key={each.number} value={each.number}>
          V{each.number}
        </option>
      ))}
    </select>
  );
  return (
    <Panel
      title="Schema"
      aside={
        <>
          {choose("from", before)} to {choose("to", after)}
        </>
      }
    >
      {compared.length === 0 ? (
        <EmptyState icon="columns" title="No fields">
          Runs report fields in the schema facet of their outputs.
        </EmptyState>
      ) : (
        <div className="scrolls" tabIndex={0} role="region" aria-label="fields">
          <table className="plain-table schema">
            <thead>
              <tr>
                <th>field</th>
                <th>{before ? `V${before.number}` : "before"}</th>
                <th>V{after.number}</th>
                <th>description</th>
              </tr>
            </thead>
            <tbody>
              {compared.map((each) => (
                <tr
                  key={each.name}
                  className={`${each.change} tone-${before ? TONES[each.change] : "none"}`}
                >
                  <td className="mono">
                    {each.name}{" "}
                    {before && each.change !== "same" && (
                      <Tag tone={TONES[each.change]}>{each.change}</Tag>
                    )}
                  </td>
                  <td className="mono">{each.before?.type ?? <span className="faint">–</span>}</td>
                  <td className="mono">{each.after?.type ?? <span className="faint">–</span>}</td>
                  <td>{each.after?.description ?? each.before?.description}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
