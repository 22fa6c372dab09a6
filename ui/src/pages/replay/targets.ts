/** What was bad, as the address says it and as the API is asked. */
import type { Ask } from "../../api/client";

export type Target = NonNullable<Ask<"get", "/api/v1/replays/plan">["query"]>;
export type Kind = "lot" | "job" | "batch";

/** Which of the three kinds an address names. */
export function kindOf(query: URLSearchParams): Kind {
  if (query.get("batch") !== null || query.get("of") === "batch") return "batch";
  return query.get("job") !== null || query.get("of") === "job" ? "job" : "lot";
}

/** A time as people enter it, made whole: a day or a minute of UTC. */
export function wholeTime(text: string | null): string | null {
  if (!text) return null;
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return `${text}T00:00:00Z`;
  const spaced = text.trim().replace(" ", "T");
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(spaced) ? `${spaced}:00Z` : spaced;
}

/** What to ask for a plan; null while something that is needed is not named. */
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
      return namespace && job ? { namespace, job, downstreamOnly, ...(lot ? { lot } : {}), ...kept(times) } : null;
    }
    default: {
      const dataset = query.get("dataset");
      const lot = query.get("lot");
      return namespace && dataset && (lot || times.from || times.to) ? { namespace, dataset, downstreamOnly, ...(lot ? { lot } : {}), ...kept(times) } : null;
    }
  }
}

function kept(times: { from: string | null; to: string | null }): Pick<Target, "from" | "to"> {
  return { ...(times.from ? { from: times.from } : {}), ...(times.to ? { to: times.to } : {}) };
}
