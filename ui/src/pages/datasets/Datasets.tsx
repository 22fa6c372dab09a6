import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { DatasetLink } from "../../kit/links";
import { NamespaceFilter } from "../../kit/NamespaceFilter";
import { useDefaultNamespace, useNamespaces } from "../../kit/namespaces";
import { usePagedList } from "../../kit/usePagedList";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, Async, ProblemNote, Loading } from "../../kit/Async";
import { Tag } from "../../kit/Status";
import { type Column, Rows, Table } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural } from "../../kit/format";
import { datasetAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { fieldsOf, tagsOf } from "../runs/facets";
import { CreateButtons } from "./CreateButtons";

const COLUMNS: Column<Schemas["Dataset"]>[] = [
  { title: "dataset", cell: (each) => <DatasetLink of={each.id} />, width: "minmax(10rem, 2.4fr)" },
  { title: "source", cell: (each) => each.sourceName, width: "minmax(6rem, 1fr)", wide: true },
  {
    title: "version",
    cell: (each) => (each.currentVersionNumber ? `V${each.currentVersionNumber}` : "–"),
    width: "70px",
    end: true,
  },
  {
    title: "fields",
    cell: (each) => fieldsOf(each.fields).length || "–",
    width: "60px",
    end: true,
    wide: true,
  },
  {
    title: "tags",
    cell: (each) => tagsOf(each.tags).map((tag) => <Tag key={tag}>{tag}</Tag>),
    width: "minmax(5rem, 1fr)",
    wide: true,
  },
  {
    title: "changed",
    cell: (each) => <Time at={each.lastModifiedAt ?? each.updatedAt} />,
    width: "110px",
  },
];

export default function Datasets() {
  const [query] = useSearchParams();
  const namespaces = useNamespaces();
  const selected = query.get("namespace");
  const likely = useDefaultNamespace("dataset", selected === null);
  const chosen = selected ?? likely;
  const words = query.get("q");
  return (
    <>
      <PageHead title="Datasets" actions={<CreateButtons namespace={chosen} />} />
      <div className="filters">
        <NamespaceFilter fallback={likely} />
        <SearchField label="Search all namespaces" />
      </div>
      {words ? (
        <SearchResults words={words} />
      ) : (
        <Async of={namespaces}>
          {(value) =>
            chosen ? (
              <DatasetList key={chosen} namespace={chosen} />
            ) : value.namespaces.length ? (
              <Loading />
            ) : (
              <NoDatasets />
            )
          }
        </Async>
      )}
    </>
  );
}

function DatasetList({ namespace }: { namespace: string }) {
  const list = usePagedList(
    "/api/v1/namespaces/{namespace}/datasets",
    { path: { namespace } },
    (answer) => ({ items: answer.datasets, total: answer.totalCount }),
  );
  if (list.problem) return <ProblemNote problem={list.problem} />;
  if (list.isReady && list.count === 0) return <NoDatasets />;
  return (
    <Panel title={namespace} aside={list.countText("dataset")}>
      <Table
        columns={COLUMNS}
        label={`datasets of ${namespace}`}
        count={list.count}
        row={list.row}
        onRange={list.onRange}
        to={(each) => datasetAddress(each.id)}
      />
    </Panel>
  );
}

function SearchResults({ words }: { words: string }) {
  const result = useGet(
    "/api/v1/search",
    { query: { q: words, filter: "DATASET", limit: 100 } },
    { keep: true },
  );
  return (
    <Async of={result}>
      {(value) => (
        <Panel title={`Search results for “${words}”`} aside={plural(value.totalCount, "dataset")}>
          <Rows
            of={value.results}
            label="datasets found"
            to={(each) => datasetAddress(each)}
            columns={[
              {
                title: "dataset",
                cell: (each) => <DatasetLink of={each} />,
                width: "minmax(10rem, 2fr)",
              },
              { title: "namespace", cell: (each) => each.namespace },
              { title: "changed", cell: (each) => <Time at={each.updatedAt} />, width: "110px" },
            ]}
          />
          {value.results.length === 0 && (
            <EmptyState icon="search" title="No dataset matches">
              The search covers words of names, descriptions, fields and tags.
            </EmptyState>
          )}
        </Panel>
      )}
    </Async>
  );
}

function NoDatasets() {
  return (
    <EmptyState icon="table" title="No dataset yet">
      A run that names a dataset creates it. Point a client at this server:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
    </EmptyState>
  );
}
