/** A dataset: its lots, its schemas and versions, its checks, its readers and writers. */
import { HoldDatasetButton } from "../../actions/work";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { Facts, PageHead, Tabs } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Tag } from "../../kit/Status";
import { Time } from "../../kit/Time";
import { LotsPanel } from "../../lots/LotsPanel";
import { datasetNode, lineageAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { tagsOf } from "../runs/facets";
import { Checks } from "./Checks";
import "./datasets.css";
import { Neighbors } from "./Neighbors";
import { FailedTests, QualityReport } from "./QualityReport";
import { Versions } from "./Versions";

export default function Dataset({
  namespace = "",
  name = "",
}: {
  namespace?: string;
  name?: string;
}) {
  const result = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}", {
    path: { namespace, dataset: name },
  });
  return <Async of={result}>{(dataset) => <DatasetDetails dataset={dataset} />}</Async>;
}

function DatasetDetails({ dataset }: { dataset: Schemas["Dataset"] }) {
  const [query] = useSearchParams();
  const id = dataset.id;
  const path = { namespace: id.namespace, dataset: id.name };
  const versions = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/versions", {
    path,
    query: { limit: 1 },
  }).data?.totalCount;
  const hold = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/standing", { path }).data
    ?.held;
  const tab = query.get("tab") ?? "lots";
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="table" size={14} /> Dataset in {id.namespace}
          </>
        }
        title={id.name}
        copies={id.name}
        actions={
          <>
            <ButtonLink to={lineageAddress(datasetNode(id))} icon="graph">
              Lineage
            </ButtonLink>
            <HoldDatasetButton namespace={id.namespace} dataset={id.name} isHeld={Boolean(hold)} />
          </>
        }
      >
        <span>
          {dataset.currentVersionNumber
            ? `V${dataset.currentVersionNumber} is current`
            : "no current version"}
        </span>
        <span>
          changed <Time at={dataset.lastModifiedAt ?? dataset.updatedAt} />
        </span>
        {tagsOf(dataset.tags).map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
        <FailedTests dataset={dataset} />
        {dataset.deleted && <Tag tone="bad">hidden</Tag>}
        {hold && (
          <Tag tone="held">
            held by {hold.who}: {hold.why || "no reason given"}
          </Tag>
        )}
      </PageHead>
      {dataset.description && <p className="describes">{dataset.description}</p>}
      <Tabs
        tabs={[
          { id: "lots", label: "Lots" },
          { id: "versions", label: "Schema and versions", count: versions },
          { id: "quality", label: "Quality" },
          { id: "use", label: "Readers and writers" },
          { id: "about", label: "About" },
        ]}
      />
      <div className="stack">
        {tab === "lots" && <LotsPanel dataset={id} />}
        {tab === "versions" && <Versions dataset={dataset} />}
        {tab === "quality" && <QualityReport dataset={dataset} />}
        {tab === "quality" && <Checks dataset={id} />}
        {tab === "use" && <Neighbors dataset={dataset} />}
        {tab === "about" && <About dataset={dataset} />}
      </div>
    </>
  );
}

function About({ dataset }: { dataset: Schemas["Dataset"] }) {
  return (
    <section className="panel">
      <div className="body">
        <Facts
          of={[
            ["Namespace", dataset.namespace],
            ["Physical name", dataset.physicalName],
            ["Source", dataset.sourceName],
            ["Kind", dataset.type],
            ["Created", <Time at={dataset.createdAt} full />],
            ["Changed", <Time at={dataset.lastModifiedAt ?? dataset.updatedAt} full />],
            ["Last lifecycle event", dataset.lastLifecycleState],
            [
              "Also called",
              dataset.aliases?.map((each) => `${each.namespace}/${each.name}`).join(", ") ||
                "no other name",
            ],
          ]}
        />
      </div>
    </section>
  );
}
