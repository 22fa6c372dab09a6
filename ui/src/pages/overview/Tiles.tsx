import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Icon } from "../../kit/Icon";
import { lookOf } from "../../kit/status";
import { count } from "../../kit/words";
import { Link } from "../../router/Link";
import { gapsPlace } from "../../router/places";

interface Tile {
  readonly state: string;
  readonly label: string;
  readonly value: number;
  readonly hint: string;
  readonly to: string;
}

/** Where lots that are late are told one by one: the gaps of the dataset that became late last. */
function latePlace({ late: [first] }: Schemas["StandingNow"]): string {
  return first ? gapsPlace({ namespace: first.namespace, name: first.dataset }, first.first) : "/gaps";
}

/** The numbers that tell at a glance whether all is well. */
export function Tiles({ now }: { now: Schemas["StandingNow"] }) {
  const queue = useGet("/api/v1/ingest/queue", {}).value?.tally;
  const sum = (name: "ready" | "waiting" | "later" | "held" | "running") => now.work.reduce((all, job) => all + job[name], 0);
  const ingest = (...states: string[]) => states.reduce((all, state) => all + (queue?.[state]?.jobs ?? 0), 0);
  const late = now.late.reduce((all, dataset) => all + dataset.count, 0);
  const moving = ingest("estimating", "provisioning", "downloading", "processing", "recording", "notify");
  const tiles: Tile[] = [
    { state: "RUNNING", label: "Running", value: sum("running") + moving, hint: "lots being worked on, and ingest jobs under way", to: "/locks" },
    { state: "READY", label: "Ready", value: sum("ready"), hint: "lots that the next free worker takes", to: "/jobs?open=1" },
    { state: "WAITING", label: "Waiting", value: sum("waiting") + ingest("pending"), hint: "lots whose inputs are not there yet, and pending ingest jobs", to: "/jobs?open=1" },
    { state: "late", label: "Late", value: late, hint: "lots that were to be there by now, after the newest that is", to: latePlace(now) },
    { state: "LATER", label: "Retry later", value: sum("later"), hint: "lots that failed and are tried again by themselves", to: "/jobs?open=1" },
    { state: "HELD", label: "Held", value: sum("held") + now.holds.length + ingest("held"), hint: "what waits for a person", to: "/jobs?open=1" },
    { state: "FAILED", label: "Failed", value: (now.jobs.FAILED ?? 0) + ingest("failed"), hint: "jobs whose latest run failed, and failed ingest jobs", to: "/jobs?state=FAILED" },
  ];
  return (
    <div className="tiles">
      {tiles.map((tile) => {
        const look = lookOf(tile.state === "READY" ? "pending" : tile.state);
        return (
          <Link key={tile.label} to={tile.to} className={`tile tone-${tile.value ? look.tone : "none"}`} title={tile.hint}>
            <span className="tile-label">
              <Icon name={tile.state === "READY" ? "bolt" : look.icon} size={14} />
              {tile.label}
            </span>
            <strong className="num">
              {count(tile.value)}
              {now.atLeast && tile.value >= 1000 ? "+" : ""}
            </strong>
          </Link>
        );
      })}
    </div>
  );
}
