/** The collections, which take batches. */
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { DatasetLink } from "../../kit/links";
import { IfAllowed } from "../../kit/IfAllowed";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { navigate } from "../../router/router";
import { HoldCollectionButton } from "./actions";
import { CollectionForm } from "./CollectionForm";
import { CollectionLink, collectionAddress } from "./links";

type Collection = Schemas["ShownCollection"];

const COLUMNS: Column<Collection>[] = [
  {
    title: "collection",
    cell: (each) => <CollectionLink of={each.name ?? ""} />,
    width: "minmax(5.5rem, 1fr)",
  },
  {
    title: "state",
    cell: (each) => (each.held ? <Status of="held" /> : <Status of="good" label="open" />),
    width: "90px",
  },
  {
    title: "dataset",
    cell: (each) => (
      <DatasetLink of={{ namespace: each.namespace ?? "default", name: each.dataset }} whole />
    ),
    width: "minmax(8rem, 1.2fr)",
    wide: true,
  },
  {
    title: "lot",
    cell: (each) => (each.lots === "batch" ? "a batch" : each.lots),
    width: "80px",
    wide: true,
  },
  {
    title: "description",
    cell: (each) => <span title={each.description}>{each.description}</span>,
    width: "minmax(6rem, 1.6fr)",
    wide: true,
  },
  {
    title: "",
    isAction: true,
    cell: (each) => <HoldCollectionButton name={each.name ?? ""} isHeld={each.held !== null} />,
    width: "134px",
    end: true,
  },
];

export function Collections() {
  const [isNew, setNew] = useState(false);
  const result = useGet("/api/v1/ingest/collections", {});
  const make = (
    <IfAllowed>
      <Button icon="plus" kind="primary" onClick={() => setNew(true)}>
        New collection
      </Button>
    </IfAllowed>
  );
  return (
    <>
      <Async of={result}>
        {({ collections }) =>
          collections.length === 0 ? (
            <EmptyState icon="inbox" title="No collection yet">
              <p>A collection assigns the lots of its batches to a dataset.</p>
              {make}
            </EmptyState>
          ) : (
            <Panel title="Collections" aside={make}>
              <Rows
                of={collections}
                label="collections"
                columns={COLUMNS}
                to={(each) => collectionAddress(each.name ?? "")}
              />
            </Panel>
          )
        }
      </Async>
      {isNew && (
        <Dialog title="New collection" className="large" onClose={() => setNew(false)}>
          <CollectionForm
            onDone={(name) => {
              setNew(false);
              navigate(collectionAddress(name));
            }}
            onCancel={() => setNew(false)}
          />
        </Dialog>
      )}
    </>
  );
}
