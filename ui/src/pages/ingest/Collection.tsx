/** A collection: its batches, its stored objects, its profile. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetLink } from "../../kit/links";
import { Facts, PageHead, Panel, Tabs } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Status, Tag } from "../../kit/Status";
import { count, size } from "../../kit/format";
import { datasetAddress } from "../../router/addresses";
import { useSearchParams } from "../../router/router";
import { DeleteCollectionButton, HoldCollectionButton, ReleaseHoldsButton } from "./actions";
import { Batches } from "./Batches";
import { CollectionForm } from "./CollectionForm";
import "./ingest.css";
import { StoredTab } from "./StoredTab";

export default function Collection({ name = "" }: { name?: string }) {
  const result = useGet("/api/v1/ingest/collections/{collection}", { path: { collection: name } });
  return (
    <Async of={result}>
      {(collection) => <CollectionDetails name={name} collection={collection} />}
    </Async>
  );
}

function CollectionDetails({
  name,
  collection,
}: {
  name: string;
  collection: Schemas["ShownCollection"];
}) {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "batches";
  const dataset = { namespace: collection.namespace ?? "default", name: collection.dataset };
  return (
    <>
      <PageHead
        kind={
          <>
            <Icon name="inbox" size={14} /> Collection in {dataset.namespace}
          </>
        }
        title={name}
        actions={
          <>
            <ButtonLink to={datasetAddress(dataset)} icon="table">
              Lots
            </ButtonLink>
            <HoldCollectionButton name={name} isHeld={collection.held !== null} />
            {!collection.held && <ReleaseHoldsButton collection={name} />}
            <DeleteCollectionButton name={name} />
          </>
        }
      >
        {collection.held ? <Status of="held" /> : <Status of="good" label="open" />}
        <span>
          batches become lots of <DatasetLink of={dataset} />
        </span>
        {collection.held && (
          <Tag tone="held">
            held by {collection.held.who}: {collection.held.why || "no reason given"}
          </Tag>
        )}
      </PageHead>
      {collection.description && <p className="describes">{collection.description}</p>}
      <Tabs
        tabs={[
          { id: "batches", label: "Batches" },
          { id: "stored", label: "Stored" },
          { id: "profile", label: "Profile" },
        ]}
      />
      <div className="stack">
        {tab === "batches" && <Batches collection={name} />}
        {tab === "stored" && <StoredTab collection={name} />}
        {tab === "profile" && <Profile collection={collection} />}
      </div>
    </>
  );
}

function Profile({ collection }: { collection: Schemas["ShownCollection"] }) {
  return (
    <>
      <Panel title="Limits and locations">
        <div className="body">
          <Facts
            of={[
              ["Files of a batch, maximum", count(collection.filesMax ?? 0)],
              ["Bytes of a batch, maximum", size(collection.bytesMax ?? 0)],
              ["Rows of a manifest, maximum", count(collection.rowsMax ?? 0)],
              ["Storage", collection.storage ?? "that of the server"],
              [
                "Arks",
                `${collection.shoulder ?? ""}, minted ${collection.minting === "ezid" ? "by EZID" : "here"}`,
              ],
              ["Callback", collection.callback ?? "none"],
              ["Mail when queued", collection.confirm ? "yes" : "no"],
            ]}
          />
        </div>
      </Panel>
      <Panel title="Profile" aside="for the rest: penstock ingest collections set">
        <div className="body">
          <CollectionForm
            key={JSON.stringify(collection)}
            of={collection}
            onDone={() => undefined}
          />
        </div>
      </Panel>
    </>
  );
}
