/** Ways that are no search: views within pages, and things that can be told by their ids alone. */
import type { IconName } from "../kit/Icon";
import type { Needs } from "../kit/rights";
import { startOf } from "../lots/intervals";
import { lotPlace, runPlace, workPlace } from "../router/places";
import { address, match } from "../router/router";

interface Way {
  readonly label: string;
  readonly icon: IconName;
  readonly to: string;
  /** Which key may go there, if not every one. */
  readonly needs?: Needs;
}

/** The views that somebody may look for by what they show; pages themselves are in the navigation. */
export const VIEWS: readonly Way[] = [
  { label: "Jobs whose latest run failed", icon: "cross", to: "/jobs?state=FAILED" },
  { label: "Jobs that are running", icon: "play", to: "/jobs?state=RUNNING" },
  { label: "Jobs with open lots", icon: "gear", to: "/jobs?open=1" },
  { label: "What is held", icon: "hand", to: "/locks?tab=held" },
  { label: "Why does a lot wait?", icon: "search", to: "/locks?tab=why" },
  { label: "Stale lots", icon: "alert", to: "/quality?tab=stale" },
  { label: "Failed ingest jobs", icon: "cross", to: "/ingest?tab=jobs&status=failed" },
  { label: "Collections", icon: "inbox", to: "/ingest?tab=collections" },
  { label: "Stored objects", icon: "inbox", to: "/ingest?tab=stored" },
  { label: "Begin a replay", icon: "replay", to: "/replay/new", needs: "admin" },
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NUMBERED = /^([bj])id(\d{1,10})$/i;

/** What a text can be the id of: a run, a batch, an ingest job, or a lot of what is shown now. */
export function thingsNamed(text: string, path: string): readonly Way[] {
  const found: Way[] = [];
  const [, kind, number] = NUMBERED.exec(text) ?? [];
  if (UUID.test(text)) found.push({ label: `Run ${text}`, icon: "play", to: runPlace(text.toLowerCase()) });
  if (kind && number) {
    const id = `${kind.toLowerCase()}id${number.padStart(10, "0")}`;
    const isBatch = id.startsWith("b");
    found.push({ label: `${isBatch ? "Batch" : "Ingest job"} ${id}`, icon: "inbox", to: address(["ingest", isBatch ? "batches" : "jobs", id]) });
  }
  const isLot = startOf(text) !== null || kind?.toLowerCase() === "b";
  const [, at = "", namespace = "", name = ""] = path.split("/");
  const shown = match("/:at/:namespace/:name", `/${at}/${namespace}/${name}`);
  if (isLot && shown?.["name"]) {
    const within = { namespace: shown["namespace"] ?? "", name: shown["name"] };
    if (at === "datasets") found.push({ label: `Lot ${text} of ${within.name}`, icon: "file", to: lotPlace(within, text) });
    if (at === "jobs") found.push({ label: `What ${within.name} does with lot ${text}`, icon: "file", to: workPlace(within, text) });
  }
  if (startOf(text) !== null) found.push({ label: `Who works on lot ${text}`, icon: "lock", to: address(["locks"], { lot: text }) });
  return found;
}
