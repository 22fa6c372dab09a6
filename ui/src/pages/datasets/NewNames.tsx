/** Creates namespaces and datasets, before any run names them. */
import { type FormEvent, useState } from "react";
import { call } from "../../api/client";
import { useAttempt } from "../../kit/attempt";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { Offered } from "../../kit/Offered";
import { Refused } from "../../kit/Refused";
import { datasetPlace } from "../../router/places";
import { address, navigate } from "../../router/router";

interface FormProps {
  onClose: () => void;
}

/** The buttons that create a namespace or a dataset, for keys that may. */
export function NewNames({ namespace }: { namespace: string | undefined }) {
  const [open, setOpen] = useState<"namespace" | "dataset" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <span className="row">
        <Offered needs="writer everywhere">
          <Button icon="plus" onClick={() => setOpen("namespace")}>
            New namespace
          </Button>
        </Offered>
        <Offered needs="writer">
          <Button icon="plus" kind="primary" onClick={() => setOpen("dataset")}>
            New dataset
          </Button>
        </Offered>
      </span>
      {open === "namespace" && (
        <Dialog title="New namespace" onClose={close}>
          <NamespaceForm onClose={close} />
        </Dialog>
      )}
      {open === "dataset" && (
        <Dialog title="New dataset" onClose={close}>
          <DatasetForm namespace={namespace} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

function NamespaceForm({ onClose }: FormProps) {
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [description, setDescription] = useState("");
  const { isBusy, problem, attempt } = useAttempt();
  async function create(event: FormEvent): Promise<void> {
    event.preventDefault();
    const body = { ownerName: owner || null, description: description || null };
    const created = await attempt({ run: () => call("post", "/api/v1/namespaces/{namespace}", { path: { namespace: name }, body }), done: `Namespace ${name} is created.` });
    if (!created) return;
    onClose();
    navigate(address(["datasets"], { namespace: name }));
  }
  return (
    <form className="stack" onSubmit={(event) => void create(event)}>
      <label>
        Name
        <input className="field" required placeholder="shop" value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label>
        Owner
        <input className="field" placeholder="the name of your key" value={owner} onChange={(event) => setOwner(event.target.value)} />
      </label>
      <label>
        Description
        <input className="field" value={description} onChange={(event) => setDescription(event.target.value)} />
      </label>
      <Refused problem={problem} />
      <Buttons verb="Create the namespace" isBusy={isBusy} onClose={onClose} />
    </form>
  );
}

function DatasetForm({ namespace: chosen, onClose }: FormProps & { namespace: string | undefined }) {
  const [namespace, setNamespace] = useState(chosen ?? "");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const { isBusy, problem, attempt } = useAttempt();
  async function create(event: FormEvent): Promise<void> {
    event.preventDefault();
    const body = { description: description || null };
    const created = await attempt({
      run: () => call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}", { path: { namespace, dataset: name }, body }),
      done: ({ isNamespaceNew }) => (isNamespaceNew ? `Namespace ${namespace} and dataset ${name} are created.` : `Dataset ${name} is created.`),
    });
    if (!created) return;
    onClose();
    navigate(datasetPlace({ namespace, name }));
  }
  return (
    <form className="stack" onSubmit={(event) => void create(event)}>
      <label>
        Namespace
        <input className="field" required placeholder="one that does not exist is created" value={namespace} onChange={(event) => setNamespace(event.target.value)} />
      </label>
      <label>
        Name
        <input className="field" required placeholder="orders" value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label>
        Description
        <input className="field" value={description} onChange={(event) => setDescription(event.target.value)} />
      </label>
      <Refused problem={problem} />
      <Buttons verb="Create the dataset" isBusy={isBusy} onClose={onClose} />
    </form>
  );
}

function Buttons({ verb, isBusy, onClose }: FormProps & { verb: string; isBusy: boolean }) {
  return (
    <footer>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" kind="primary" icon="check" disabled={isBusy}>
        {verb}
      </Button>
    </footer>
  );
}
