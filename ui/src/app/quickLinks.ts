/** Links of the palette that need no search: views id pages, and things with a known id. */
import type { IconName } from "../kit/Icon";
import type { Needs } from "../kit/rights";
import { startOf } from "../lots/intervals";
import { lotAddress, runAddress, workAddress } from "../router/addresses";
import { address, match } from "../router/router";

interface QuickLink {
  readonly label: string;
  readonly icon: IconName;
  readonly to: string;
  /** The rights that the page takes. */
  readonly needs?: Needs;
}

/** The views id pages. The pages themselves are in the navigation. */
export const QUICK_LINKS: readonly QuickLink[] = [
  { label: "Jobs whose latest run failed", icon: "cross", to: "/jobs?state=FAILED" },
  { label: "Jobs that are running", icon: "play", to: "/jobs?state=RUNNING" },
  { label: "Jobs with open lots", icon: "gear", to: "/jobs?open=1" },
  { label: "Holds", icon: "hand", to: "/locks?tab=held" },
  { label: "Why does a lot wait?", icon: "search", to: "/locks?tab=why" },
  { label: "Stale lots", icon: "alert", to: "/quality?tab=stale" },
  { label: "Failed ingest jobs", icon: "cross", to: "/ingest?tab=jobs&status=failed" },
  { label: "Collections", icon: "inbox", to: "/ingest?tab=collections" },
  { label: "Stored objects", icon: "inbox", to: "/ingest?tab=stored" },
  { label: "Start a replay", icon: "replay", to: "/replay/new", needs: "admin" },
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NUMBERED = /^([bj])id(\d{1,10})$/i;

/** List the links for an id: of a run, a batch, an ingest job, or a lot of the current page. */
export function linksForId(text: string, path: string): readonly QuickLink[] {
  const links: QuickLink[] = [];
  const [, kind, number] = NUMBERED.exec(text) ?? [];
  if (UUID.test(text))
    links.push({ label: `Run ${text}`, icon: "play", to: runAddress(text.toLowerCase()) });
  if (kind && number) {
    const id = `${kind.toLowerCase()}id${number.padStart(10, "0")}`;
    const isBatch = id.startsWith("b");
    links.push({
      label: `${isBatch ? "Batch" : "Ingest job"} ${id}`,
      icon: "inbox",
      to: address(["ingest", isBatch ? "batches" : "jobs", id]),
    });
  }
  const isLot = startOf(text) !== null || kind?.toLowerCase() === "b";
  const [, at = "", namespace = "", name = ""] = path.split("/");
  const current = match("/:at/:namespace/:name", `/${at}/${namespace}/${name}`);
  if (isLot && current?.["name"]) {
    const id = { namespace: current["namespace"] ?? "", name: current["name"] };
    if (at === "datasets")
      links.push({
        label: `Lot ${text} of ${id.name}`,
        icon: "file",
        to: lotAddress(id, text),
      });
    if (at === "jobs")
      links.push({
        label: `Work of ${id.name} on lot ${text}`,
        icon: "file",
        to: workAddress(id, text),
      });
  }
  if (startOf(text) !== null)
    links.push({
      label: `Claims on lot ${text}`,
      icon: "lock",
      to: address(["locks"], { lot: text }),
    });
  return links;
}
