/** Search and commands in one place: Ctrl-K, or `/`. */
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { useGet } from "../api/hooks";
import type { Loaded } from "../api/store";
import { useModal } from "../kit/Dialog";
import { Icon, type IconName } from "../kit/Icon";
import { type Rights, useRights } from "../kit/rights";
import { datasetNode, datasetPlace, jobNode, jobPlace, lineagePlace, lotPlace, objectPlace } from "../router/places";
import { address, navigate, usePlace } from "../router/router";
import { count } from "../kit/words";
import { navFor } from "./pages";
import { thingsNamed, VIEWS } from "./ways";
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
      const asked = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey);
      if (!asked || document.querySelector("dialog[open]")) return;
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
  return isOpen ? <Asking onClose={() => setOpen(false)} /> : null;
}

function Asking({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const asked = useLater(text.trim());
  const found = useGet("/api/v1/search", asked ? { query: { q: asked, limit: 20 } } : null, { live: false, keep: true });
  const records = useGet("/api/v1/search/records", asked ? { query: { q: asked, limit: 20 } } : null, { live: false, keep: true });
  const { path } = usePlace();
  const rights = useRights();
  const modal = useModal(onClose);
  const list = useId();

  const choices = [...commands(text.trim(), path, rights), ...(asked ? [...results(found.value?.results ?? []), ...recordChoices(records.value?.records ?? [])] : [])];
  const chosen = Math.min(at, choices.length - 1);
  function pick(choice: Choice | undefined): void {
    if (!choice) return;
    onClose();
    choice.act();
  }
  function steer(event: KeyboardEvent): void {
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
          onKeyDown={steer}
          autoFocus
        />
        <kbd>Esc</kbd>
      </div>
      <ul id={list} role="listbox" aria-label="what was found">
        {choices.map((choice, place) => (
          <li key={choice.id} id={`${list}-${place}`} role="option" aria-selected={place === chosen} onClick={() => pick(choice)} onMouseMove={() => setAt(place)} ref={place === chosen ? intoSight : undefined}>
            <Icon name={choice.icon} />
            <span>{choice.label}</span>
            <span className="faint">{choice.hint}</span>
          </li>
        ))}
      </ul>
      {text.trim() && <p className="faint none" role="status">{saidOf(text.trim() === asked && !(records.isReading || (asked && records.at === 0)), found.problem ? found : { ...found, problem: records.problem }, choices.length)}</p>}
    </dialog>
  );
}

/** What is said below what was found: where it is not all there is, or there is none. */
function saidOf(isAsked: boolean, { value, problem, at, isReading }: Loaded<{ readonly totalCount: number; readonly results: readonly unknown[] }>, choices: number): string {
  if (!isAsked || isReading || at === 0) return "Searching…";
  if (problem) return `Names could not be searched. ${problem.message}`;
  if (choices === 0) return "Nothing matches. Datasets and jobs are found by words of their names, descriptions, fields and tags; all else by an id, an ARK, a local id, a file name, a SHA-512 digest or a depositor.";
  const more = (value?.totalCount ?? 0) - (value?.results.length ?? 0);
  return more > 0 ? `And ${count(more)} more that are named like that; another word finds fewer.` : "";
}

function intoSight(item: HTMLLIElement | null): void {
  item?.scrollIntoView({ block: "nearest" });
}

function commands(text: string, path: string, rights: Rights): Choice[] {
  const words = text.toLowerCase();
  const all: Choice[] = [
    ...navFor(rights).map((page) => ({ id: `page ${page.path}`, label: page.title, hint: "page", icon: page.nav?.icon ?? ("right" as const), act: () => navigate(page.path) })),
    ...VIEWS.filter((view) => !view.needs || rights.allows(view.needs)).map(({ label, icon, to }) => ({ id: `view ${to}`, label, hint: "view", icon, act: () => navigate(to) })),
    { id: "theme", label: "Change between light and dark", hint: "command", icon: "moon", act: () => void toggleTheme() },
    { id: "docs", label: "The API, to read", hint: "/docs", icon: "out", act: () => window.location.assign("/docs") },
  ];
  const things = thingsNamed(text, path).map(({ label, icon, to }) => ({ id: `thing ${to}`, label, hint: "by its id", icon, act: () => navigate(to) }));
  return words ? [...things, ...all.filter((choice) => choice.label.toLowerCase().includes(words))] : all;
}

type Result = NonNullable<ReturnType<typeof useGet<"/api/v1/search">>["value"]>["results"][number];

function results(found: readonly Result[]): Choice[] {
  return found.flatMap((each) => {
    const isJob = each.type === "JOB";
    const name = { namespace: each.namespace, name: each.name };
    return [
      {
        id: `${each.type} ${each.namespace} ${each.name}`,
        label: each.name,
        hint: each.namespace,
        icon: isJob ? ("gear" as const) : ("table" as const),
        act: () => navigate(isJob ? jobPlace(name) : datasetPlace(name)),
      },
      ...(found.length <= 3
        ? [
            {
              id: `lineage ${each.type} ${each.namespace} ${each.name}`,
              label: `Lineage of ${each.name}`,
              hint: each.namespace,
              icon: "graph" as const,
              act: () => navigate(lineagePlace(isJob ? jobNode(name) : datasetNode(name))),
            },
          ]
        : []),
    ];
  });
}

type SearchRecord = NonNullable<ReturnType<typeof useGet<"/api/v1/search/records">>["value"]>["records"][number];

/** A choice for each record; a run, batch or ingest job found by its id is a choice already. */
function recordChoices(records: readonly SearchRecord[]): Choice[] {
  return records.flatMap((record) => {
    const place = recordPlace(record);
    if (place === null) return [];
    const owner = record.kind === "lot" ? record.dataset : record.kind === "file" ? record.ark : record.collection;
    return {
      id: `${record.kind} ${record.name} ${record.ark ?? record.dataset ?? ""}`,
      label: record.name,
      hint: [record.kind, owner ?? "", record.matched === "id" || record.value === record.name ? "" : `${record.matched} ${record.value}`].filter(Boolean).join(" · "),
      icon: record.kind === "batch" ? ("inbox" as const) : ("file" as const),
      act: () => navigate(place),
    };
  });
}

function recordPlace({ kind, name, matched, namespace, dataset, ark, version }: SearchRecord): string | null {
  if (kind === "lot") return lotPlace({ namespace: namespace ?? "", name: dataset ?? "" }, name);
  if (kind === "batch") return matched === "id" ? null : address(["ingest", "batches", name]);
  if (kind === "object" || kind === "file") return objectPlace(ark ?? name, version);
  return null;
}

/** A text once somebody has stopped typing it. */
function useLater(text: string): string {
  const [later, setLater] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), WAIT_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return later;
}
