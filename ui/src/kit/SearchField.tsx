import { useEffect, useState } from "react";
import { useQuery } from "../router/router";
import { Icon } from "./Icon";

const WAIT_MS = 150;

/** Words to look for; they are in the address once somebody has stopped typing. */
export function SearchField({ label, name = "q", type = "search" }: { label: string; name?: string; type?: "search" | "text" }) {
  const [query, setQuery] = useQuery();
  const kept = query.get(name) ?? "";
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  useEffect(() => {
    if (text === kept) return;
    const timer = setTimeout(() => setQuery({ [name]: text }), WAIT_MS);
    return () => clearTimeout(timer);
  }, [text, kept, name, setQuery]);
  return (
    <span className="search-field">
      <Icon name={type === "search" ? "search" : "filter"} size={14} />
      <input className="field" type={type} aria-label={label} placeholder={label} value={text} onChange={(event) => setText(event.target.value)} />
    </span>
  );
}
