/** Chooses a dataset or a job, and a lot or a range of it; what is chosen is in the address. */
import { type FormEvent, useEffect, useId, useState } from "react";
import { useGet } from "../api/hooks";
import { useQuery } from "../router/router";
import { Button } from "./Button";
import { useLikeliest, useNamespaces } from "./namespaces";
import "./pick.css";

export interface PickField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly needed?: boolean;
  readonly options?: readonly string[];
}

interface Props {
  kind: "dataset" | "job";
  /** What else is asked for, such as the lot. */
  fields?: readonly PickField[];
  verb: string;
}

/** A form whose values are kept in the address when it is sent. */
export function Pick({ kind, fields = [], verb }: Props) {
  const [query, setQuery] = useQuery();
  const names = ["namespace", kind, ...fields.map((field) => field.name)];
  const kept = names.map((name) => query.get(name) ?? "").join("\u0000");
  const [values, setValues] = useState<Record<string, string>>({});
  useEffect(() => setValues(Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]))), [kept]);
  const namespaces = useNamespaces().value?.namespaces ?? [];
  const change = (name: string, value: string) => setValues({ ...values, [name]: value });
  const likely = useLikeliest(kind, !values["namespace"]);
  const namespace = values["namespace"] || likely || "";
  function send(event: FormEvent): void {
    event.preventDefault();
    setQuery({ ...values, namespace }, { push: true });
  }
  return (
    <form className="pick" onSubmit={send}>
      <label>
        Namespace
        <select className="field" value={namespace} onChange={(event) => change("namespace", event.target.value)}>
          {namespaces.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <Named kind={kind} namespace={namespace} value={values[kind] ?? ""} onChange={(value) => change(kind, value)} />
      {fields.map((field) => (
        <label key={field.name}>
          {field.label}
          {field.options ? (
            <select className="field" value={values[field.name] ?? ""} onChange={(event) => change(field.name, event.target.value)}>
              {field.options.map((option) => (
                <option key={option} value={option}>
                  {option || "any"}
                </option>
              ))}
            </select>
          ) : (
            <input className="field mono" placeholder={field.hint} required={field.needed} value={values[field.name] ?? ""} onChange={(event) => change(field.name, event.target.value)} />
          )}
        </label>
      ))}
      <Button type="submit" kind="primary" icon="search">
        {verb}
      </Button>
    </form>
  );
}

function Named({ kind, namespace, value, onChange }: { kind: "dataset" | "job"; namespace: string; value: string; onChange: (value: string) => void }) {
  const list = useId();
  const ask = namespace ? { path: { namespace }, query: { limit: 1000 } } : null;
  const datasets = useGet("/api/v1/namespaces/{namespace}/datasets", kind === "dataset" ? ask : null).value?.datasets;
  const jobs = useGet("/api/v1/namespaces/{namespace}/jobs", kind === "job" ? ask : null).value?.jobs;
  return (
    <label>
      {kind === "dataset" ? "Dataset" : "Job"}
      <input className="field" list={list} required autoComplete="off" placeholder="its name" value={value} onChange={(event) => onChange(event.target.value)} />
      <datalist id={list}>
        {(datasets ?? jobs ?? []).map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
    </label>
  );
}
