/** Search and commands in one place: Ctrl-K, or `/`. */
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import type { AnswerOf, Problem } from "../api/client";
import { useGet } from "../api/queries";
import { useModal } from "../kit/Dialog";
import { Icon, type IconName } from "../kit/Icon";
import { type Rights, useRights } from "../kit/rights";
import {
  datasetNode,
  datasetAddress,
  jobNode,
  jobAddress,
  lineageAddress,
  lotAddress,
  objectAddress,
} from "../router/addresses";
import { address, navigate, useLocation } from "../router/router";
import { count } from "../kit/format";
import { navFor } from "./pages";
import { linksForId, QUICK_LINKS } from "./quickLinks";
import { toggleTheme } from "./theme";

interface Choice {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly icon: IconName;
  readonly act: () => void;
}

const WAIT_MS = 120;
const opened = new EventTarget();

export function openPalette(): void {
  opened.dispatchEvent(new Event("open"));
}

export function Palette() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const open = () => setOpen(true);
    function listen(event: globalThis.KeyboardEvent): void {
      const target = event.target as HTMLElement;
      const isTyping = target.matches?.("input, textarea, select, [contenteditable]");
      const isShortcut =
        (event.key === "k" && (event.ctrlKey || event.metaKey)) ||
        (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey);
      if (!isShortcut || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setOpen(true);
    }
    opened.addEventListener("open", open);
    window.addEventListener("keydown", listen);
    return () => {
      opened.removeEventListener("open", open);
      window.removeEventListener("keydown", listen);
    };
  }, []);
  return isOpen ? <PaletteDialog onClose={() => setOpen(false)} /> : null;
}

function PaletteDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const term = useDebounced(text.trim());
  const names = useGet("/api/v1/search", term ? { query: { q: term, limit: 20 } } : null, {
    live: false,
    keep: true,
  });
  const records = useGet(
    "/api/v1/search/records",
    term ? { query: { q: term, limit: 20 } } : null,
    { live: false, keep: true },
  );
  const { path } = useLocation();
  const rights = useRights();
  const modal = useModal(onClose);
  const list = useId();

  const choices = [
    ...commands(text.trim(), path, rights),
    ...(term
      ? [...results(names.data?.results ?? []), ...recordChoices(records.data?.records ?? [])]
      : []),
  ];
  const chosen = Math.min(at, choices.length - 1);
  const isSettled =
    text.trim() === term && [names, records].every((query) => query.isFetched && !query.isFetching);
  const more = (names.data?.totalCount ?? 0) - (names.data?.results.length ?? 0);
  function pick(choice: Choice | undefined): void {
    if (!choice) return;
    onClose();
    choice.act();
  }
  function onKey(event: KeyboardEvent): void {
    if (event.key === "ArrowDown") setAt(Math.min(choices.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
    else if (event.key === "Enter") pick(choices[chosen]);
    else return;
    event.preventDefault();
  }
  return (
    <dialog {...modal} className="palette" aria-label="search or go to">
      <div className="palette-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="search, or go to a page"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={choices[chosen] ? `${list}-${chosen}` : undefined}
          placeholder="Search names, ids, ARKs, files, digests; or go to a page…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKey}
          autoFocus
        />
        <kbd>Esc</kbd>
      </div>
      <ul id={list} role="listbox" aria-label="search results">
        {choices.map((choice, place) => (
          <li
            key={choice.id}
            id={`${list}-${place}`}
            role="option"
            aria-selected={place === chosen}
            onClick={() => pick(choice)}
            onMouseMove={() => setAt(place)}
            ref={place === chosen ? scrollToItem : undefined}
          >
            <Icon name={choice.icon} />
            <span>{choice.label}</span>
            <span className="faint">{choice.hint}</span>
          </li>
        ))}
      </ul>
      {text.trim() && (
        <p className="faint none" role="status">
          {statusText(isSettled, names.error ?? records.error, more, choices.length)}
        </p>
      )}
    </dialog>
  );
}

/** The line below the results: the state of the search, or the number of further results. */
function statusText(
  isSettled: boolean,
  problem: Problem | null,
  more: number,
  choices: number,
): string {
  if (!isSettled) return "Searching…";
  if (problem) return `The search failed. ${problem.message}`;
  if (choices === 0)
    return "Nothing matches. Search datasets and jobs by words of their names, descriptions, fields and tags. Search everything else by an id, an ARK, a local id, a file name, a SHA-512 digest or a depositor.";
  return more > 0 ? `${count(more)} more match; add a word to narrow the search.` : "";
}

function scrollToItem(item: HTMLLIElement | null): void {
  item?.scrollIntoView({ block: "nearest" });
}

function commands(text: string, path: string, rights: Rights): Choice[] {
  const words = text.toLowerCase();
  const all: Choice[] = [
    ...navFor(rights).map((page) => ({
      id: `page ${page.path}`,
      label: page.title,
      hint: "page",
      icon: page.nav?.icon ?? ("right" as const),
      act: () => navigate(page.path),
    })),
    ...QUICK_LINKS.filter((view) => !view.needs || rights.allows(view.needs)).map(
      ({ label, icon, to }) => ({
        id: `view ${to}`,
        label,
        hint: "view",
        icon,
        act: () => navigate(to),
      }),
    ),
    {
      id: "theme",
      label: "Switch between light and dark",
      hint: "command",
      icon: "moon",
      act: () => void toggleTheme(),
    },
    {
      id: "docs",
      label: "API reference",
      hint: "/docs",
      icon: "out",
      act: () => window.location.assign("/docs"),
    },
  ];
  const things = linksForId(text, path).map(({ label, icon, to }) => ({
    id: `thing ${to}`,
    label,
    hint: "by id",
    icon,
    act: () => navigate(to),
  }));
  return words
    ? [...things, ...all.filter((choice) => choice.label.toLowerCase().includes(words))]
    : all;
}

type Result = AnswerOf<"get", "/api/v1/search">["results"][number];

function results(names: readonly Result[]): Choice[] {
  return names.flatMap((each) => {
    const isJob = each.type === "JOB";
    const name = { namespace: each.namespace, name: each.name };
    return [
      {
        id: `${each.type} ${each.namespace} ${each.name}`,
        label: each.name,
        hint: each.namespace,
        icon: isJob ? ("gear" as const) : ("table" as const),
        act: () => navigate(isJob ? jobAddress(name) : datasetAddress(name)),
      },
      ...(names.length <= 3
        ? [
            {
              id: `lineage ${each.type} ${each.namespace} ${each.name}`,
              label: `Lineage of ${each.name}`,
              hint: each.namespace,
              icon: "graph" as const,
              act: () => navigate(lineageAddress(isJob ? jobNode(name) : datasetNode(name))),
            },
          ]
        : []),
    ];
  });
}

type SearchRecord = AnswerOf<"get", "/api/v1/search/records">["records"][number];

/** A choice for each record, except for those that `linksForId` lists. */
function recordChoices(records: readonly SearchRecord[]): Choice[] {
  return records.flatMap((record) => {
    const place = recordAddress(record);
    if (place === null) return [];
    const owner =
      record.kind === "lot"
        ? record.dataset
        : record.kind === "file"
          ? record.ark
          : record.collection;
    return {
      id: `${record.kind} ${record.name} ${record.ark ?? record.dataset ?? ""}`,
      label: record.name,
      hint: [
        record.kind,
        owner ?? "",
        record.matched === "id" || record.value === record.name
          ? ""
          : `${record.matched} ${record.value}`,
      ]
        .filter(Boolean)
        .join(" · "),
      icon: record.kind === "batch" ? ("inbox" as const) : ("file" as const),
      act: () => navigate(place),
    };
  });
}

function recordAddress({
  kind,
  name,
  matched,
  namespace,
  dataset,
  ark,
  version,
}: SearchRecord): string | null {
  if (kind === "lot") return lotAddress({ namespace: namespace ?? "", name: dataset ?? "" }, name);
  if (kind === "batch") return matched === "id" ? null : address(["ingest", "batches", name]);
  if (kind === "object" || kind === "file") return objectAddress(ark ?? name, version);
  return null;
}

/** A text after a pause in typing. */
function useDebounced(text: string): string {
  const [later, setLater] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), WAIT_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return later;
}
