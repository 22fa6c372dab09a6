import { useQuery } from "../router/router";
import { useNamespaces } from "./namespaces";

/** Chooses a namespace, which is `otherwise` where none is, or all; the choice is in the address. */
export function NamespaceFilter({ all, otherwise = "" }: { all?: string; otherwise?: string | undefined }) {
  const [query, setQuery] = useQuery();
  const namespaces = useNamespaces().value?.namespaces ?? [];
  return (
    <label className="row">
      Namespace
      <select className="field" value={query.get("namespace") ?? otherwise} onChange={(event) => setQuery({ namespace: event.target.value })}>
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
