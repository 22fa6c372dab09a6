import { useEffect, useState } from "react";
import { useSearchParams } from "../router/router";
import { Icon } from "./Icon";

const WAIT_MS = 150;

/** A search field; its text goes into the address after a pause in typing. */
export function SearchField({
  label,
  name = "q",
  type = "search",
}: {
  label: string;
  name?: string;
  type?: "search" | "text";
}) {
  const [query, setQuery] = useSearchParams();
  const saved = query.get(name) ?? "";
  const [text, setText] = useState(saved);
  useEffect(() => setText(saved), [saved]);
  useEffect(() => {
    if (text === saved) return;
    const timer = setTimeout(() => setQuery({ [name]: text }), WAIT_MS);
    return () => clearTimeout(timer);
  }, [text, saved, name, setQuery]);
  return (
    <span className="search-field">
      <Icon name={type === "search" ? "search" : "filter"} size={14} />
      <input
        className="field"
        type={type}
        aria-label={label}
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </span>
  );
}
