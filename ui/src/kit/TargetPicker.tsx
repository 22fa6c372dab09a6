/** The choice of a dataset or a job, and of its lots. The choice is in the address. */
import { type FormEvent, useId, useState } from "react";
import { useGet } from "../api/queries";
import { useSearchParams } from "../router/router";
import { Button } from "./Button";
import { useDefaultNamespace, useNamespaces } from "./namespaces";
import "./picker.css";

export interface PickerField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly needed?: boolean;
  readonly options?: readonly string[];
}

interface Props {
  kind: "dataset" | "job";
  /** Further fields, such as the lot. */
  fields?: readonly PickerField[];
  verb: string;
}

/** A form that writes its values to the address. */
export function TargetPicker({ kind, fields = [], verb }: Props) {
  const [query, setQuery] = useSearchParams();
  const names = ["namespace", kind, ...fields.map((field) => field.name)];
  const saved = names.map((name) => query.get(name) ?? "").join("\u0000");
  const entered = () => Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]));
  const [values, setValues] = useState<Record<string, string>>(entered);
  const [shown, setShown] = useState(saved);
  if (shown !== saved) {
    setShown(saved);
    setValues(entered());
  }
  const namespaces = useNamespaces().data?.namespaces ?? [];
  const change = (name: string, value: string) => setValues({ ...values, [name]: value });
  const fallback = useDefaultNamespace(kind, !values["namespace"]);
  const namespace = values["namespace"] || fallback || "";
  function send(event: FormEvent): void {
    event.preventDefault();
    setQuery({ ...values, namespace }, { push: true });
  }
  return (
    <form className="pick" onSubmit={send}>
      <label>
        Namespace
        <select
          className="field"
          value={namespace}
          onChange={(event) => change("namespace", event.target.value)}
        >
          {namespaces.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <NameField
        kind={kind}
        namespace={namespace}
        value={values[kind] ?? ""}
        onChange={(value) => change(kind, value)}
      />
      {fields.map((field) => (
        <label key={field.name}>
          {field.label}
          {field.options ? (
            <select
              className="field"
              value={values[field.name] ?? ""}
              onChange={(event) => change(field.name, event.target.value)}
            >
              {field.options.map((option) => (
                <option key={option} value={option}>
                  {option || "any"}
                </option>
              ))}
            </select>
          ) : (
            <input
              className="field mono"
              placeholder={field.hint}
              required={field.needed}
              value={values[field.name] ?? ""}
              onChange={(event) => change(field.name, event.target.value)}
            />
          )}
        </label>
      ))}
      <Button type="submit" kind="primary" icon="search">
        {verb}
      </Button>
    </form>
  );
}

function NameField({
  kind,
  namespace,
  value,
  onChange,
}: {
  kind: "dataset" | "job";
  namespace: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const list = useId();
  const ask = namespace ? { path: { namespace }, query: { limit: 1000 } } : null;
  const datasets = useGet(
    "/api/v1/namespaces/{namespace}/datasets",
    kind === "dataset" ? ask : null,
  ).data?.datasets;
  const jobs = useGet("/api/v1/namespaces/{namespace}/jobs", kind === "job" ? ask : null).data
    ?.jobs;
  return (
    <label>
      {kind === "dataset" ? "Dataset" : "Job"}
      <input
        className="field"
        list={list}
        required
        autoComplete="off"
        placeholder="its name"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={list}>
        {(datasets ?? jobs ?? []).map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
    </label>
  );
}
