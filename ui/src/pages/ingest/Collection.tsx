/** A collection: its batches, what it stored, its profile. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { DatasetName } from "../../kit/Names";
import { Facts, PageHead, Panel, Tabs } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { Status, Tag } from "../../kit/Status";
import { count, size } from "../../kit/words";
import { datasetPlace } from "../../router/places";
import { useQuery } from "../../router/router";
import { DeleteCollection, HoldCollection, ReleaseHeld } from "./actions";
import { Batches } from "./Batches";
import { CollectionForm } from "./CollectionForm";
import "./ingest.css";
import { Stored } from "./Stored";

export default function Collection({ name = "" }: { name?: string }) {
  const found = useGet("/api/v1/ingest/collections/{collection}", { path: { collection: name } });
  return <Shown of={found}>{(collection) => <Whole name={name} collection={collection} />}</Shown>;
}

function Whole({ name, collection }: { name: string; collection: Schemas["ShownCollection"] }) {
  const [query] = useQuery();
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
            <ButtonLink to={datasetPlace(dataset)} icon="table">
              Its lots
            </ButtonLink>
            <HoldCollection name={name} isHeld={collection.held !== null} />
            {!collection.held && <ReleaseHeld collection={name} />}
            <DeleteCollection name={name} />
          </>
        }
      >
        {collection.held ? <Status of="held" /> : <Status of="good" label="open" />}
        <span>
          its batches become lots of <DatasetName of={dataset} />
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
        {tab === "stored" && <Stored collection={name} />}
        {tab === "profile" && <Profile collection={collection} />}
      </div>
    </>
  );
}

function Profile({ collection }: { collection: Schemas["ShownCollection"] }) {
  return (
    <>
      <Panel title="Limits and places">
        <div className="body">
          <Facts
            of={[
              ["Files of a batch, at most", count(collection.filesMax ?? 0)],
              ["Bytes of a batch, at most", size(collection.bytesMax ?? 0)],
              ["Rows of a manifest, at most", count(collection.rowsMax ?? 0)],
              ["Storage", collection.storage ?? "the server's"],
              ["Arks", `${collection.shoulder ?? ""}, minted ${collection.minting === "ezid" ? "by EZID" : "here"}`],
              ["Callback", collection.callback ?? "none"],
              ["Mail when queued", collection.confirm ? "yes" : "no"],
            ]}
          />
        </div>
      </Panel>
      <Panel title="What can be changed here" aside="the rest: penstock ingest collections set">
        <div className="body">
          <CollectionForm key={JSON.stringify(collection)} of={collection} onDone={() => undefined} />
        </div>
      </Panel>
    </>
  );
}
