/** The bad data of a replay, from the address to the API. */
import type { Ask } from "../../api/client";

export type Target = NonNullable<Ask<"get", "/api/v1/replays/plan">["query"]>;
export type Kind = "lot" | "job" | "batch";

/** Find the kind of bad data in an address. */
export function kindOf(query: URLSearchParams): Kind {
  if (query.get("batch") !== null || query.get("of") === "batch") return "batch";
  return query.get("job") !== null || query.get("of") === "job" ? "job" : "lot";
}

/** Complete an entered time: a day or a minute in UTC. */
export function wholeTime(text: string | null): string | null {
  if (!text) return null;
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return `${text}T00:00:00Z`;
  const spaced = text.trim().replace(" ", "T");
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(spaced) ? `${spaced}:00Z` : spaced;
}

/** Build the query for a plan; null while a required value is missing. */
export function targetOf(query: URLSearchParams): Target | null {
  const namespace = query.get("namespace") ?? "";
  const downstreamOnly = query.get("only") !== null;
  const times = { from: wholeTime(query.get("from")), to: wholeTime(query.get("to")) };
  switch (kindOf(query)) {
    case "batch": {
      const batch = query.get("batch");
      return batch ? { batch, downstreamOnly } : null;
    }
    case "job": {
      const job = query.get("job");
      const lot = query.get("lot");
      return namespace && job
        ? { namespace, job, downstreamOnly, ...(lot ? { lot } : {}), ...presentTimes(times) }
        : null;
    }
    default: {
      const dataset = query.get("dataset");
      const lot = query.get("lot");
      return namespace && dataset && (lot || times.from || times.to)
        ? { namespace, dataset, downstreamOnly, ...(lot ? { lot } : {}), ...presentTimes(times) }
        : null;
    }
  }
}

function presentTimes(times: {
  from: string | null;
  to: string | null;
}): Pick<Target, "from" | "to"> {
  return { ...(times.from ? { from: times.from } : {}), ...(times.to ? { to: times.to } : {}) };
}
