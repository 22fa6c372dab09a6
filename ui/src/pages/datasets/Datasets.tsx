import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { DatasetName } from "../../kit/Names";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { useLikeliest, useNamespaces } from "../../kit/namespaces";
import { usePages } from "../../kit/pages";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Shown, Trouble, Waiting } from "../../kit/Shown";
import { Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/words";
import { datasetPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import { fieldsOf, tagsOf } from "../runs/facets";
import { NewNames } from "./NewNames";

const COLUMNS: Column<Schemas["Dataset"]>[] = [
  { title: "dataset", cell: (each) => <DatasetName of={each.id} />, width: "minmax(10rem, 2.4fr)" },
  { title: "source", cell: (each) => each.sourceName, width: "minmax(6rem, 1fr)", wide: true },
  { title: "version", cell: (each) => (each.currentVersionNumber ? `V${each.currentVersionNumber}` : "–"), width: "70px", end: true },
  { title: "fields", cell: (each) => fieldsOf(each.fields).length || "–", width: "60px", end: true, wide: true },
  { title: "tags", cell: (each) => tagsOf(each.tags).map((tag) => <Tag key={tag}>{tag}</Tag>), width: "minmax(5rem, 1fr)", wide: true },
  { title: "changed", cell: (each) => <Time at={each.lastModifiedAt ?? each.updatedAt} />, width: "110px" },
];

export default function Datasets() {
  const [query] = useQuery();
  const namespaces = useNamespaces();
  const named = query.get("namespace");
  const likely = useLikeliest("dataset", named === null);
  const chosen = named ?? likely;
  const words = query.get("q");
  return (
    <>
      <PageHead title="Datasets" actions={<NewNames namespace={chosen} />} />
      <div className="filters">
        <NamespaceFilter otherwise={likely} />
        <SearchField label="Search all namespaces" />
      </div>
      {words ? (
        <Found words={words} />
      ) : (
        <Shown of={namespaces}>
          {(value) => (chosen ? <Listed key={chosen} namespace={chosen} /> : value.namespaces.length ? <Waiting /> : <Nothing />)}
        </Shown>
      )}
    </>
  );
}

function Listed({ namespace }: { namespace: string }) {
  const list = usePages("/api/v1/namespaces/{namespace}/datasets", { path: { namespace } }, (answer) => ({ items: answer.datasets, total: answer.totalCount }));
  if (list.problem) return <Trouble problem={list.problem} />;
  if (list.isReady && list.count === 0) return <Nothing />;
  return (
    <Panel title={namespace} aside={list.said("dataset")}>
      <Table columns={COLUMNS} label={`datasets of ${namespace}`} count={list.count} row={list.row} onRange={list.onRange} to={(each) => datasetPlace(each.id)} />
    </Panel>
  );
}

function Found({ words }: { words: string }) {
  const found = useGet("/api/v1/search", { query: { q: words, filter: "DATASET", limit: 100 } }, { keep: true });
  return (
    <Shown of={found}>
      {(value) => (
        <Panel title={`Named like “${words}”`} aside={plural(value.totalCount, "dataset")}>
          <Rows
            of={value.results}
            label="datasets found"
            to={(each) => datasetPlace(each)}
            columns={[
              { title: "dataset", cell: (each) => <DatasetName of={each} />, width: "minmax(10rem, 2fr)" },
              { title: "namespace", cell: (each) => each.namespace },
              { title: "changed", cell: (each) => <Time at={each.updatedAt} />, width: "110px" },
            ]}
          />
          {value.results.length === 0 && <Empty icon="search" title="Nothing is named like that">Words of names, descriptions, fields and tags are searched.</Empty>}
        </Panel>
      )}
    </Shown>
  );
}

function Nothing() {
  return (
    <Empty icon="table" title="No dataset here yet">
      Datasets appear when a run names them. Point a client at this server:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
    </Empty>
  );
}
