/** The profile of a collection, to be made or changed. */
import { type FormEvent, type ReactNode, useState } from "react";
import { call, type Schemas } from "../../api/client";
import { useAttempt } from "../../kit/attempt";
import { Button } from "../../kit/Button";
import { Offered } from "../../kit/Offered";
import { Refused } from "../../kit/Refused";
import { useRights } from "../../kit/rights";

type Profile = Schemas["Collection"];

interface Props {
  /** What is changed; left out, a new one is made. */
  of?: Schemas["ShownCollection"];
  onDone: (name: string) => void;
  onCancel?: () => void;
}

const LOTS = ["batch", "PT5M", "PT10M", "PT15M", "PT1H", "PT24H"];
const lines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** The profile alone: who has stopped the collection is no part of it. */
function profileOf(shown: Schemas["ShownCollection"] | undefined): Profile {
  if (!shown) return { dataset: "", namespace: "default", lots: "batch" };
  const { held: _, ...profile } = shown;
  return profile;
}

export function CollectionForm({ of: shown, onDone, onCancel }: Props) {
  const [name, setName] = useState(shown?.name ?? "");
  const [profile, setProfile] = useState<Profile>(() => profileOf(shown));
  const [places, setPlaces] = useState((shown?.places ?? []).join("\n"));
  const [mail, setMail] = useState((shown?.mail ?? []).join("\n"));
  const mayChange = useRights().allows("admin");
  const { isBusy, problem, attempt } = useAttempt();
  const change = (next: Partial<Profile>) => setProfile({ ...profile, ...next });
  async function send(event: FormEvent): Promise<void> {
    event.preventDefault();
    const body: Profile = { ...profile, name, places: lines(places), mail: lines(mail) };
    const kept = await attempt({ run: () => call("put", "/api/v1/ingest/collections/{collection}", { path: { collection: name }, body }), done: shown ? `${name} is changed.` : `${name} is made.` });
    if (kept) onDone(name);
  }
  const text = (label: string, field: "namespace" | "dataset" | "owner" | "description" | "shoulder", more: { needed?: boolean; hint?: string; className?: string } = {}) => (
    <Field label={label} className={more.className ?? ""}>
      <input className="field" required={more.needed ?? false} placeholder={more.hint} value={profile[field] ?? ""} onChange={(event) => change({ [field]: event.target.value })} />
    </Field>
  );
  return (
    <form className="stack" onSubmit={(event) => void send(event)}>
      <fieldset className="form-grid" disabled={!mayChange}>
        {!shown && (
          <Field label="Name">
            <input className="field" required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" maxLength={100} placeholder="letters, digits, . _ -" value={name} onChange={(event) => setName(event.target.value)} />
          </Field>
        )}
        {text("Namespace", "namespace", { needed: true })}
        {text("Dataset that its lots belong to", "dataset", { needed: true })}
        <Field label="One lot is">
          <select className="field" value={profile.lots ?? "batch"} onChange={(event) => change({ lots: event.target.value })}>
            {LOTS.map((each) => (
              <option key={each} value={each}>
                {each === "batch" ? "a batch" : `all of ${each}`}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Priority of its jobs, low first">
          <input className="field" type="number" min={0} max={99} placeholder="by batch size" value={profile.priority ?? ""} onChange={(event) => change({ priority: event.target.value === "" ? null : Number(event.target.value) })} />
        </Field>
        <Field label="Digests">
          <select className="field" value={profile.digests ?? "check"} onChange={(event) => change({ digests: event.target.value as Schemas["DigestPolicy"] })}>
            <option value="check">those that are given are checked</option>
            <option value="require">every file must have one</option>
          </select>
        </Field>
        <Field label="An update checks of the stored files that it keeps">
          <select className="field" value={profile.inherited ?? "size"} onChange={(event) => change({ inherited: event.target.value as Schemas["InheritedPolicy"] })}>
            <option value="size">that they are there with their size</option>
            <option value="digest">also their digests, by reading them</option>
          </select>
        </Field>
        <Field label="Days that completed batches stay in lists">
          <input className="field" type="number" min={0} max={36500} value={profile.keepDays ?? 30} onChange={(event) => change({ keepDays: Number(event.target.value) })} />
        </Field>
        {text("Owner of its local ids", "owner", { hint: "the collection" })}
        {text("Description", "description", { className: "across" })}
        <Field label="Places that may be read although they are not public, one in each line">
          <textarea className="field mono" value={places} onChange={(event) => setPlaces(event.target.value)} />
        </Field>
        <Field label="Who gets the reports, one address in each line">
          <textarea className="field mono" value={mail} onChange={(event) => setMail(event.target.value)} />
        </Field>
      </fieldset>
      <Refused problem={problem} />
      <Offered says>
        <footer className="row">
          <Button type="submit" kind="primary" icon="check" disabled={isBusy}>
            {shown ? "Change the profile" : "Make the collection"}
          </Button>
          {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        </footer>
      </Offered>
    </form>
  );
}

function Field({ label, className = "", children }: { label: string; className?: string; children: ReactNode }) {
  return (
    <label className={className}>
      {label}
      {children}
    </label>
  );
}
