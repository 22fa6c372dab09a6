import { useSearchParams } from "../router/router";
import { useNamespaces } from "./namespaces";

/** The choice of a namespace, kept in the address; `fallback` is shown while there is none. */
export function NamespaceFilter({
  all,
  fallback = "",
}: {
  all?: string;
  fallback?: string | undefined;
}) {
  const [query, setQuery] = useSearchParams();
  const namespaces = useNamespaces().data?.namespaces ?? [];
  return (
    <label className="row">
      Namespace
      <select
        className="field"
        value={query.get("namespace") ?? fallback}
        onChange={(event) => setQuery({ namespace: event.target.value })}
      >
        {all && <option value="">{all}</option>}
        {namespaces.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
    </label>
  );
}
