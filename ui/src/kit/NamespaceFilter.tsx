import { useGet } from "../api/hooks";
import { useQuery } from "../router/router";

/** Chooses a namespace; the choice is in the address. */
export function NamespaceFilter({ all }: { all?: string }) {
  const [query, setQuery] = useQuery();
  const namespaces = useGet("/api/v1/namespaces", { query: { limit: 1000 } }).value?.namespaces ?? [];
  return (
    <label className="row">
      Namespace
      <select className="field" value={query.get("namespace") ?? ""} onChange={(event) => setQuery({ namespace: event.target.value })}>
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
