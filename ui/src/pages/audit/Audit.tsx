/** The audit log: every act of an administrator, with its reason. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Pager } from "../../kit/Pager";
import { PageHead, Panel } from "../../kit/Panel";
import { SearchField } from "../../kit/SearchField";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/format";
import { Link } from "../../router/Link";
import { useSearchParams } from "../../router/router";
import { targetAddress } from "./targets";

type Entry = Schemas["ShownEntry"];
const PART = 500;
const REFUSED = ": refused";

const COLUMNS: Column<Entry>[] = [
  { title: "when", cell: (entry) => <Time at={entry.at} />, width: "90px" },
  {
    title: "who",
    cell: (entry) => <span title={entry.who}>{entry.who}</span>,
    width: "minmax(4.5rem, 0.6fr)",
  },
  { title: "action", cell: (entry) => <Action of={entry.action} />, width: "minmax(8rem, 1fr)" },
  { title: "target", cell: (entry) => <Target of={entry} />, width: "minmax(8rem, 1.6fr)" },
  {
    title: "why",
    cell: (entry) => <span title={entry.detail}>{entry.detail}</span>,
    width: "minmax(8rem, 2fr)",
    wide: true,
  },
];

export default function Audit() {
  const [query, setQuery] = useSearchParams();
  const offset = Math.max(0, Number(query.get("from") ?? 0) || 0);
  const words = (query.get("q") ?? "").toLowerCase();
  const filters = filtersOf(query);
  const isFiltered = Object.keys(filters).length > 0;
  const result = useGet(
    "/api/v1/audit",
    { query: { limit: PART, offset, ...filters } },
    { keep: true },
  );
  return (
    <>
      <PageHead title="Audit log" />
      <div className="filters tight">
        <SearchField label="Who (full name)" name="who" type="text" />
        <SearchField label="Action, such as hold" name="action" type="text" />
        <label className="row">
          Since
          <input
            className="field"
            type="date"
            value={query.get("since") ?? ""}
            onChange={(event) => setQuery({ since: event.target.value, from: null })}
          />
        </label>
        <SearchField label="Words on this page" />
      </div>
      <Async of={result}>
        {({ entries }) => {
          const matching = words
            ? entries.filter((entry) =>
                [entry.who, entry.action, entry.target, entry.detail].some((text) =>
                  text.toLowerCase().includes(words),
                ),
              )
            : entries;
          const isLast = entries.length < PART;
          return (
            <Panel
              title="Actions"
              aside={
                words
                  ? `${count(matching.length)} of ${plural(entries.length, "entry", "entries")}`
                  : `newest first${offset ? `, after the first ${count(offset)}` : ""}`
              }
            >
              {matching.length === 0 ? (
                <NoEntries words={words} isFiltered={isFiltered} isWhole={isLast && offset === 0} />
              ) : (
                <Rows of={matching} label="audit log" columns={COLUMNS} rows={20} />
              )}
              <Pager
                onFirst={offset ? () => setQuery({ from: null }) : null}
                onNext={isLast ? null : () => setQuery({ from: offset + PART }, { push: true })}
              />
            </Panel>
          );
        }}
      </Async>
    </>
  );
}

/** Read the filters from the address; a day starts at midnight UTC. */
function filtersOf(query: URLSearchParams): { who?: string; action?: string; since?: string } {
  const [who, action, since] = [query.get("who"), query.get("action"), query.get("since")];
  return {
    ...(who ? { who } : {}),
    ...(action ? { action: action.toLowerCase() } : {}),
    ...(since ? { since: `${since}T00:00:00Z` } : {}),
  };
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
  const to = targetAddress(entry.action, entry.target);
  return to ? (
    <Link className="name" to={to} title={entry.target}>
      {entry.target}
    </Link>
  ) : (
    <span title={entry.target}>{entry.target}</span>
  );
}

function NoEntries({
  words,
  isFiltered,
  isWhole,
}: {
  words: string;
  isFiltered: boolean;
  isWhole: boolean;
}) {
  if (words) {
    return (
      <EmptyState icon="search" title="No entry has these words">
        {isWhole
          ? "The whole log was searched."
          : `Only the ${PART} entries of this part were searched. The button below opens older ones.`}
      </EmptyState>
    );
  }
  if (isFiltered) {
    return (
      <EmptyState icon="search" title="No entry matches">
        The whole log was searched. A filter is the full name of a key; a day starts at midnight
        UTC.
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="list" title="The log is empty">
      The log keeps the acts of administrators with their reasons: holds, releases, replays, keys.
    </EmptyState>
  );
}
