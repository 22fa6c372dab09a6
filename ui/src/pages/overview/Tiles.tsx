import type { Schemas } from "../../api/client";
import { Icon } from "../../kit/Icon";
import { lookOf } from "../../kit/status";
import { count } from "../../kit/words";
import { Link } from "../../router/Link";
import { gapsPlace } from "../../router/places";
import { address } from "../../router/router";
import { SHOWN, type Sources } from "./sources";

type Now = Schemas["StandingNow"];

/** A number and where that many are listed; a number that is not known yet, or could not be read, is undefined. */
interface Part {
  readonly value: number | undefined;
  readonly one: string;
  readonly many: string;
  readonly to: string;
  readonly isMore?: boolean;
}

interface Tile {
  readonly state: string;
  readonly label: string;
  readonly hint: string;
  readonly parts: readonly Part[];
}

const UNDER_WAY = ["estimating", "provisioning", "downloading", "processing", "recording", "notify"];

/** Where late lots are told one by one: the gaps of the only dataset that is late, or the list of those that are. */
function latePlace({ late }: Now): string {
  const [first, ...rest] = late;
  return first && rest.length === 0 ? gapsPlace({ namespace: first.namespace, name: first.dataset }, first.first) : "/gaps";
}

function tilesOf(now: Now, { queue, heldLots, heldBatches }: Sources): readonly Tile[] {
  const tally = queue?.tally ?? undefined; // a key for one namespace is not told of all jobs
  const sum = (name: "ready" | "waiting" | "later" | "held" | "running") => now.work.reduce((all, job) => all + job[name], 0);
  const lots = (value: number | undefined, to: string): Part => ({ value, one: "lot", many: "lots", to, isMore: now.atLeast && (value ?? 0) >= 1000 });
  const jobs = (state: "RUNNING" | "FAILED"): Part => ({ value: now.jobs[state] ?? 0, one: "job", many: "jobs", to: address(["jobs"], { state }) });
  const ingest = (to: string, ...states: string[]): Part => ({ value: tally && states.reduce((all, state) => all + (tally[state]?.jobs ?? 0), 0), one: "ingest job", many: "ingest jobs", to });
  const stage = (status: string) => address(["ingest"], { tab: "jobs", status });
  const held = address(["locks"], { tab: "held" });
  // What somebody has to do something about comes first.
  return [
    { state: "FAILED", label: "Failed", hint: "jobs whose latest run failed, and failed ingest jobs", parts: [jobs("FAILED"), ingest(stage("failed"), "failed")] },
    {
      state: "HELD",
      label: "Held",
      hint: "what waits for a person",
      parts: [
        lots(heldLots && heldLots.totalCount + sum("held"), held),
        { value: now.holds.length, one: "job or dataset", many: "jobs and datasets", to: held },
        { value: queue && (queue.held ? 1 : 0), one: "ingest queue", many: "ingest queues", to: "/ingest" },
        { value: queue?.collectionsHeld.length, one: "collection", many: "collections", to: address(["ingest"], { tab: "collections" }) },
        { value: heldBatches.length, one: "batch", many: "batches", to: address(["ingest"], { state: "held" }), isMore: heldBatches.length === SHOWN },
        ingest(stage("held"), "held"),
      ],
    },
    { state: "late", label: "Late", hint: "lots that were to be there by now, after the newest that is", parts: [{ ...lots(now.late.reduce((all, dataset) => all + dataset.count, 0), latePlace(now)), isMore: false }] },
    { state: "LATER", label: "Retry later", hint: "lots that failed and are tried again by themselves", parts: [lots(sum("later"), "/jobs?open=1")] },
    { state: "RUNNING", label: "Running", hint: "lots being worked on, jobs whose latest run goes on, ingest jobs under way", parts: [lots(sum("running"), "/locks"), jobs("RUNNING"), ingest("/ingest", ...UNDER_WAY)] },
    { state: "READY", label: "Ready", hint: "lots that the next free worker takes", parts: [lots(sum("ready"), "/jobs?open=1")] },
    { state: "WAITING", label: "Waiting", hint: "lots whose inputs are not there yet, and pending ingest jobs", parts: [lots(sum("waiting"), "/jobs?open=1"), ingest(stage("pending"), "pending")] },
  ];
}

/** The numbers that tell at a glance whether all is well; each leads to what it counts. */
export function Tiles({ now, sources }: { now: Now; sources: Sources }) {
  const unknown = sources.awaited.length > 0 ? "…" : "?";
  return (
    <div className="tiles">
      {tilesOf(now, sources).map((tile) => {
        const look = lookOf(tile.state === "READY" ? "pending" : tile.state);
        const first = tile.parts.find((part) => part.value) ?? tile.parts[0];
        const rest = tile.parts.filter((part) => part !== first && part.value !== 0);
        return (
          <section key={tile.label} className={`tile tone-${first?.value ? look.tone : "none"}`} title={tile.hint}>
            <h2 className="tile-label">
              <Icon name={tile.state === "READY" ? "bolt" : look.icon} size={14} />
              {tile.label}
            </h2>
            {first && <Figure of={first} unknown={unknown} className="first" />}
            {known(rest).map((part) => (
              <Figure key={part.one} of={part} unknown={unknown} className="more" />
            ))}
          </section>
        );
      })}
    </div>
  );
}

/** Those with a number, and one for all that have none yet. */
function known(parts: readonly Part[]): readonly Part[] {
  const unknown = parts.find((part) => part.value === undefined);
  const rest = parts.filter((part) => part.value !== undefined);
  return unknown ? [...rest, { ...unknown, many: "in ingest" }] : rest;
}

function Figure({ of: part, unknown, className }: { of: Part; unknown: string; className: string }) {
  const said = part.value === undefined ? unknown : count(part.value);
  return (
    <Link to={part.to} className={className}>
      <strong className="num">
        {said}
        {part.isMore ? "+" : ""}
      </strong>{" "}
      {part.value === 1 ? part.one : part.many}
    </Link>
  );
}
