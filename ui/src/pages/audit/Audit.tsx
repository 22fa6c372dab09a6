/** Who did what to what, when and why: everything that needed an administrator. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Pager } from "../../kit/Pager";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { useQuery } from "../../router/router";
import { targetPlace } from "./targets";

type Entry = Schemas["ShownEntry"];
const PART = 500;
const REFUSED = ": refused";

const COLUMNS: Column<Entry>[] = [
  { title: "when", cell: (entry) => <Time at={entry.at} />, width: "90px" },
  { title: "who", cell: (entry) => <span title={entry.who}>{entry.who}</span>, width: "minmax(4.5rem, 0.6fr)" },
  { title: "what", cell: (entry) => <Action of={entry.action} />, width: "minmax(8rem, 1fr)" },
  { title: "to what", cell: (entry) => <Target of={entry} />, width: "minmax(8rem, 1.6fr)" },
  { title: "why", cell: (entry) => <span title={entry.detail}>{entry.detail}</span>, width: "minmax(8rem, 2fr)", wide: true },
];

export default function Audit() {
  const [query, setQuery] = useQuery();
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const words = (query.get("q") ?? "").toLowerCase();
  const filters = asked(query);
  const isFiltered = Object.keys(filters).length > 0;
  const found = useGet("/api/v1/audit", { query: { limit: PART, offset, ...filters } }, { keep: true });
  return (
    <>
      <PageHead title="Audit log" />
      <div className="filters tight">
        <SearchField label="Who (whole name)" name="who" type="text" />
        <SearchField label="What, as hold" name="action" type="text" />
        <label className="row">
          Since
          <input className="field" type="date" value={query.get("since") ?? ""} onChange={(event) => setQuery({ since: event.target.value, from: null })} />
        </label>
        <SearchField label="Words in what is shown" />
      </div>
      <Shown of={found}>
        {({ entries }) => {
          const shown = words ? entries.filter((entry) => [entry.who, entry.action, entry.target, entry.detail].some((text) => text.toLowerCase().includes(words))) : entries;
          const isLast = entries.length < PART;
          return (
            <Panel title="What was done by hand" aside={words ? `${count(shown.length)} of ${plural(entries.length, "entry", "entries")}` : `newest first${offset ? `, after the first ${count(offset)}` : ""}`}>
              {shown.length === 0 ? <Nothing words={words} isFiltered={isFiltered} isAll={isLast && offset === 0} /> : <Rows of={shown} label="audit log" columns={COLUMNS} rows={20} />}
              <Pager onFirst={offset ? () => setQuery({ from: null }) : null} onNext={isLast ? null : () => setQuery({ from: offset + PART }, { push: true })} />
            </Panel>
          );
        }}
      </Shown>
    </>
  );
}

/** What the server is asked for; a day begins at midnight UTC. */
function asked(query: URLSearchParams): { who?: string; action?: string; since?: string } {
  const [who, action, since] = [query.get("who"), query.get("action"), query.get("since")];
  return { ...(who ? { who } : {}), ...(action ? { action: action.toLowerCase() } : {}), ...(since ? { since: `${since}T00:00:00Z` } : {}) };
}

function Action({ of: action }: { of: string }) {
  const isRefused = action.endsWith(REFUSED);
  return isRefused ? (
    <>
      {action.slice(0, -REFUSED.length)} <Status of="failed" label="refused" />
    </>
  ) : (
    action
  );
}

function Target({ of: entry }: { of: Entry }) {
  const to = targetPlace(entry.action, entry.target);
  return to ? (
    <Link className="name" to={to} title={entry.target}>
      {entry.target}
    </Link>
  ) : (
    <span title={entry.target}>{entry.target}</span>
  );
}

function Nothing({ words, isFiltered, isAll }: { words: string; isFiltered: boolean; isAll: boolean }) {
  if (words) {
    return (
      <Empty icon="search" title="Nothing here says that">
        {isAll ? "The whole log was looked through." : `The ${PART} entries of this part were looked through; older parts are behind the button below.`}
      </Empty>
    );
  }
  if (isFiltered) {
    return (
      <Empty icon="search" title="Nothing like that was done">
        The whole log was looked through. A name is meant whole, as the key that was used is called; the day begins at midnight UTC.
      </Empty>
    );
  }
  return (
    <Empty icon="list" title="Nothing was done by hand yet">
      Whatever an administrator does here, with a reason, is written down: holds, releases, replays, keys.
    </Empty>
  );
}
