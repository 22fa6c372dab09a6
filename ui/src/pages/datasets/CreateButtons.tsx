/** The creation of namespaces and datasets before a run names them. */
import { type FormEvent, useState } from "react";
import { call } from "../../api/client";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { IfAllowed } from "../../kit/IfAllowed";
import { MutationError } from "../../kit/MutationError";
import { useApiMutation } from "../../kit/useApiMutation";
import { datasetAddress } from "../../router/addresses";
import { address, navigate } from "../../router/router";

interface FormProps {
  onClose: () => void;
}

/** The buttons that create a namespace or a dataset. */
export function CreateButtons({ namespace }: { namespace: string | undefined }) {
  const [open, setOpen] = useState<"namespace" | "dataset" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <span className="row">
        <IfAllowed needs="writer everywhere">
          <Button icon="plus" onClick={() => setOpen("namespace")}>
            New namespace
          </Button>
        </IfAllowed>
        <IfAllowed needs="writer">
          <Button icon="plus" kind="primary" onClick={() => setOpen("dataset")}>
            New dataset
          </Button>
        </IfAllowed>
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
  const { mutate, isPending, error } = useApiMutation({
    send: () =>
      call("post", "/api/v1/namespaces/{namespace}", {
        path: { namespace: name },
        body: { ownerName: owner || null, description: description || null },
      }),
    done: `Namespace ${name} is created.`,
  });
  function create(event: FormEvent): void {
    event.preventDefault();
    mutate(undefined, {
      onSuccess: () => {
        onClose();
        navigate(address(["datasets"], { namespace: name }));
      },
    });
  }
  return (
    <form className="stack" onSubmit={create}>
      <label>
        Name
        <input
          className="field"
          required
          placeholder="shop"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label>
        Owner
        <input
          className="field"
          placeholder="the name of your key"
          value={owner}
          onChange={(event) => setOwner(event.target.value)}
        />
      </label>
      <label>
        Description
        <input
          className="field"
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
      </label>
      <MutationError problem={error} />
      <Buttons verb="Create namespace" isBusy={isPending} onClose={onClose} />
    </form>
  );
}

function DatasetForm({
  namespace: chosen,
  onClose,
}: FormProps & { namespace: string | undefined }) {
  const [namespace, setNamespace] = useState(chosen ?? "");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const { mutate, isPending, error } = useApiMutation({
    send: () =>
      call("post", "/api/v1/namespaces/{namespace}/datasets/{dataset}", {
        path: { namespace, dataset: name },
        body: { description: description || null },
      }),
    done: ({ isNamespaceNew }) =>
      isNamespaceNew
        ? `Namespace ${namespace} and dataset ${name} are created.`
        : `Dataset ${name} is created.`,
  });
  function create(event: FormEvent): void {
    event.preventDefault();
    mutate(undefined, {
      onSuccess: () => {
        onClose();
        navigate(datasetAddress({ namespace, name }));
      },
    });
  }
  return (
    <form className="stack" onSubmit={create}>
      <label>
        Namespace
        <input
          className="field"
          required
          placeholder="created if it does not exist"
          value={namespace}
          onChange={(event) => setNamespace(event.target.value)}
        />
      </label>
      <label>
        Name
        <input
          className="field"
          required
          placeholder="orders"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label>
        Description
        <input
          className="field"
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
      </label>
      <MutationError problem={error} />
      <Buttons verb="Create dataset" isBusy={isPending} onClose={onClose} />
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
