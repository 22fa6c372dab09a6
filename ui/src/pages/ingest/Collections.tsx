/** What batches can be submitted to. */
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { DatasetName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { navigate } from "../../router/router";
import { HoldCollection } from "./actions";
import { CollectionForm } from "./CollectionForm";
import { CollectionName, collectionPlace } from "./names";

type Collection = Schemas["ShownCollection"];

const COLUMNS: Column<Collection>[] = [
  { title: "collection", cell: (each) => <CollectionName of={each.name ?? ""} />, width: "minmax(5.5rem, 1fr)" },
  { title: "state", cell: (each) => (each.held ? <Status of="held" /> : <Status of="good" label="open" />), width: "90px" },
  { title: "dataset", cell: (each) => <DatasetName of={{ namespace: each.namespace ?? "default", name: each.dataset }} whole />, width: "minmax(8rem, 1.2fr)", wide: true },
  { title: "a lot is", cell: (each) => (each.lots === "batch" ? "a batch" : each.lots), width: "80px", wide: true },
  { title: "description", cell: (each) => <span title={each.description}>{each.description}</span>, width: "minmax(6rem, 1.6fr)", wide: true },
  { title: "", acts: true, cell: (each) => <HoldCollection name={each.name ?? ""} isHeld={each.held !== null} />, width: "126px", end: true },
];

export function Collections() {
  const [isNew, setNew] = useState(false);
  const found = useGet("/api/v1/ingest/collections", {});
  const make = (
    <Offered>
      <Button icon="plus" kind="primary" onClick={() => setNew(true)}>
        New collection
      </Button>
    </Offered>
  );
  return (
    <>
      <Shown of={found}>
        {({ collections }) =>
          collections.length === 0 ? (
            <Empty icon="inbox" title="There is no collection yet">
              <p>A collection says which dataset its batches become lots of.</p>
              {make}
            </Empty>
          ) : (
            <Panel title="Collections" aside={make}>
              <Rows of={collections} label="collections" columns={COLUMNS} to={(each) => collectionPlace(each.name ?? "")} />
            </Panel>
          )
        }
      </Shown>
      {isNew && (
        <Dialog title="A new collection" className="large" onClose={() => setNew(false)}>
          <CollectionForm
            onDone={(name) => {
              setNew(false);
              navigate(collectionPlace(name));
            }}
            onCancel={() => setNew(false)}
          />
        </Dialog>
      )}
    </>
  );
}
