import type { Schemas } from "../../api/client";
import { Icon } from "../../kit/Icon";
import { ACTIVE_STAGES, lookOf } from "../../kit/states";
import { count } from "../../kit/format";
import { Link } from "../../router/Link";
import { gapsAddress } from "../../router/addresses";
import { address } from "../../router/router";
import { SHOWN, type Sources } from "./sources";

type Now = Schemas["SystemOverview"];

/** A number with the address of its list; undefined while it is unknown. */
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

/** Find the list of late lots: the gaps of the only late dataset, or all late datasets. */
function lateAddress({ late }: Now): string {
  const [first, ...rest] = late;
  return first && rest.length === 0
    ? gapsAddress({ namespace: first.namespace, name: first.dataset }, first.first)
    : "/gaps";
}

function tilesOf(now: Now, { queue, heldLots, heldBatches }: Sources): readonly Tile[] {
  const tally = queue?.tally ?? undefined; // null for a key of one namespace
  const sum = (name: "ready" | "waiting" | "retryable" | "held" | "running") =>
    now.work.reduce((all, job) => all + job[name], 0);
  const lots = (value: number | undefined, to: string): Part => ({
    value,
    one: "lot",
    many: "lots",
    to,
    isMore: now.atLeast && (value ?? 0) >= 1000,
  });
  const jobs = (state: "RUNNING" | "FAILED"): Part => ({
    value: now.jobs[state] ?? 0,
    one: "job",
    many: "jobs",
    to: address(["jobs"], { state }),
  });
  const ingest = (to: string, ...states: string[]): Part => ({
    value: tally && states.reduce((all, state) => all + (tally[state]?.jobs ?? 0), 0),
    one: "ingest job",
    many: "ingest jobs",
    to,
  });
  const stage = (status: string) => address(["ingest"], { tab: "jobs", status });
  const held = address(["locks"], { tab: "held" });
  // The tiles that need an action come first.
  return [
    {
      state: "FAILED",
      label: "Failed",
      hint: "jobs whose latest run failed, and failed ingest jobs",
      parts: [jobs("FAILED"), ingest(stage("failed"), "failed")],
    },
    {
      state: "HELD",
      label: "On hold",
      hint: "lots, jobs, datasets, batches and collections that wait for a person",
      parts: [
        lots(heldLots && heldLots.totalCount + sum("held"), held),
        { value: now.holds.length, one: "job or dataset", many: "jobs and datasets", to: held },
        {
          value: queue && (queue.held ? 1 : 0),
          one: "ingest queue",
          many: "ingest queues",
          to: "/ingest",
        },
        {
          value: queue?.collectionsHeld.length,
          one: "collection",
          many: "collections",
          to: address(["ingest"], { tab: "collections" }),
        },
        {
          value: heldBatches.length,
          one: "batch",
          many: "batches",
          to: address(["ingest"], { state: "held" }),
          isMore: heldBatches.length === SHOWN,
        },
        ingest(stage("held"), "held"),
      ],
    },
    {
      state: "late",
      label: "Late",
      hint: "lots after the newest one that are due",
      parts: [
        {
          ...lots(
            now.late.reduce((all, dataset) => all + dataset.count, 0),
            lateAddress(now),
          ),
          isMore: false,
        },
      ],
    },
    {
      state: "RETRYABLE",
      label: "Retry later",
      hint: "failed lots with a retry ahead",
      parts: [lots(sum("retryable"), "/jobs?open=1")],
    },
    {
      state: "RUNNING",
      label: "Running",
      hint: "running lots, jobs with a running latest run, running ingest jobs",
      parts: [lots(sum("running"), "/locks"), jobs("RUNNING"), ingest("/ingest", ...ACTIVE_STAGES)],
    },
    {
      state: "READY",
      label: "Ready",
      hint: "lots for the next free worker",
      parts: [lots(sum("ready"), "/jobs?open=1")],
    },
    {
      state: "WAITING",
      label: "Waiting",
      hint: "lots with missing inputs, and pending ingest jobs",
      parts: [lots(sum("waiting"), "/jobs?open=1"), ingest(stage("pending"), "pending")],
    },
  ];
}

/** The numbers of each state, with links to their lists. */
export function Tiles({ now, sources }: { now: Now; sources: Sources }) {
  const unknown = sources.awaited.length > 0 ? "…" : "?";
  return (
    <div className="tiles">
      {tilesOf(now, sources).map((tile) => {
        const look = lookOf(tile.state === "READY" ? "pending" : tile.state);
        const first = tile.parts.find((part) => part.value) ?? tile.parts[0];
        const rest = tile.parts.filter((part) => part !== first && part.value !== 0);
        return (
          <section
            key={tile.label}
            className={`tile tone-${first?.value ? look.tone : "none"}`}
            title={tile.hint}
          >
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

/** Keep the parts with a number, and one for all unknown ones. */
function known(parts: readonly Part[]): readonly Part[] {
  const unknown = parts.find((part) => part.value === undefined);
  const rest = parts.filter((part) => part.value !== undefined);
  return unknown ? [...rest, { ...unknown, many: "in ingest" }] : rest;
}

function Figure({
  of: part,
  unknown,
  className,
}: {
  of: Part;
  unknown: string;
  className: string;
}) {
  const text = part.value === undefined ? unknown : count(part.value);
  return (
    <Link to={part.to} className={className}>
      <strong className="num">
        {text}
        {part.isMore ? "+" : ""}
      </strong>{" "}
      {part.value === 1 ? part.one : part.many}
    </Link>
  );
}
