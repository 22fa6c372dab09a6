/** The form for a new collection or for the profile of an existing one. */
import { type FormEvent, type ReactNode, useState } from "react";
import { call, type Schemas } from "../../api/client";
import { Button } from "../../kit/Button";
import { IfAllowed } from "../../kit/IfAllowed";
import { MutationError } from "../../kit/MutationError";
import { useApiMutation } from "../../kit/useApiMutation";
import { useRights } from "../../kit/rights";

type Profile = Schemas["Collection"];

interface Props {
  /** The collection to change; without it, a new one is created. */
  of?: Schemas["ShownCollection"];
  onDone: (name: string) => void;
  onCancel?: () => void;
}

const LOTS = ["batch", "PT5M", "PT10M", "PT15M", "PT1H", "PT24H"];
const lines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** The profile of a collection, without its hold. */
function profileOf(collection: Schemas["ShownCollection"] | undefined): Profile {
  if (!collection) return { dataset: "", namespace: "default", lots: "batch" };
  const { held, ...profile } = collection;
  return profile;
}

export function CollectionForm({ of: collection, onDone, onCancel }: Props) {
  const [name, setName] = useState(collection?.name ?? "");
  const [profile, setProfile] = useState<Profile>(() => profileOf(collection));
  const [places, setPlaces] = useState((collection?.places ?? []).join("\n"));
  const [mail, setMail] = useState((collection?.mail ?? []).join("\n"));
  const mayChange = useRights().allows("admin");
  const { mutate, isPending, error } = useApiMutation({
    send: (body: Profile) =>
      call("put", "/api/v1/ingest/collections/{collection}", { path: { collection: name }, body }),
    done: collection ? `${name} is changed.` : `${name} is created.`,
  });
  const change = (next: Partial<Profile>) => setProfile({ ...profile, ...next });
  function submit(event: FormEvent): void {
    event.preventDefault();
    mutate(
      { ...profile, name, places: lines(places), mail: lines(mail) },
      { onSuccess: () => onDone(name) },
    );
  }
  const text = (
    label: string,
    field: "namespace" | "dataset" | "owner" | "description" | "shoulder",
    more: { needed?: boolean; hint?: string; className?: string } = {},
  ) => (
    <Field label={label} className={more.className ?? ""}>
      <input
        className="field"
        required={more.needed ?? false}
        placeholder={more.hint}
        value={profile[field] ?? ""}
        onChange={(event) => change({ [field]: event.target.value })}
      />
    </Field>
  );
  return (
    <form className="stack" onSubmit={submit}>
      <fieldset className="form-grid" disabled={!mayChange}>
        {!collection && (
          <Field label="Name">
            <input
              className="field"
              required
              pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
              maxLength={100}
              placeholder="letters, digits, . _ -"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          </Field>
        )}
        {text("Namespace", "namespace", { needed: true })}
        {text("Dataset of its lots", "dataset", { needed: true })}
        <Field label="One lot per">
          <select
            className="field"
            value={profile.lots ?? "batch"}
            onChange={(event) => change({ lots: event.target.value })}
          >
            {LOTS.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Priority of its jobs (0 runs first)">
          <input
            className="field"
            type="number"
            min={0}
            max={99}
            placeholder="by batch size"
            value={profile.priority ?? ""}
            onChange={(event) =>
              change({ priority: event.target.value === "" ? null : Number(event.target.value) })
            }
          />
        </Field>
        <Field label="Digests">
          <select
            className="field"
            value={profile.digests ?? "check"}
            onChange={(event) => change({ digests: event.target.value as Schemas["DigestPolicy"] })}
          >
            <option value="check">check those in the manifest</option>
            <option value="require">require one for every file</option>
          </select>
        </Field>
        <Field label="Check of stored files that an update keeps">
          <select
            className="field"
            value={profile.inherited ?? "size"}
            onChange={(event) =>
              change({ inherited: event.target.value as Schemas["InheritedPolicy"] })
            }
          >
            <option value="size">existence and size</option>
            <option value="digest">also digests, by reading the files</option>
          </select>
        </Field>
        <Field label="Days to list completed batches">
          <input
            className="field"
            type="number"
            min={0}
            max={36500}
            value={profile.keepDays ?? 30}
            onChange={(event) => change({ keepDays: Number(event.target.value) })}
          />
        </Field>
        {text("Owner of its local ids", "owner", { hint: "name of the collection" })}
        {text("Description", "description", { className: "across" })}
        <Field label="Private locations that may be read, one per line">
          <textarea
            className="field mono"
            value={places}
            onChange={(event) => setPlaces(event.target.value)}
          />
        </Field>
        <Field label="Mail addresses for reports, one per line">
          <textarea
            className="field mono"
            value={mail}
            onChange={(event) => setMail(event.target.value)}
          />
        </Field>
      </fieldset>
      <MutationError problem={error} />
      <IfAllowed hasNote>
        <footer className="row">
          <Button type="submit" kind="primary" icon="check" disabled={isPending}>
            {collection ? "Save profile" : "Create collection"}
          </Button>
          {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        </footer>
      </IfAllowed>
    </form>
  );
}

function Field({
  label,
  className = "",
  children,
}: {
  label: string;
  className?: string;
  children: ReactNode;
}) {
  return (
    <label className={className}>
      {label}
      {children}
    </label>
  );
}
