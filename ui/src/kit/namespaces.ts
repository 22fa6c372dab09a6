/** The namespaces, and the one that is meant where none is named. */
import { useState } from "react";
import { useGet } from "../api/hooks";

interface Within {
  readonly namespace: string;
}

interface Working extends Within {
  readonly inputs: readonly Within[];
  readonly outputs: readonly Within[];
}

const JOBS = 10;

export const useNamespaces = () => useGet("/api/v1/namespaces", { query: { limit: 1000 } });

/** Where something happened last, by the jobs that changed last: the first by name may be one that nobody looks for. */
export function likeliest(kind: "dataset" | "job", jobs: readonly Working[]): string | undefined {
  if (kind === "job") return jobs[0]?.namespace;
  return [...jobs.flatMap((job) => job.outputs), ...jobs.flatMap((job) => job.inputs)][0]?.namespace;
}

/** The first namespace that somebody made; every catalog has the one that is called default. */
function first(namespaces: readonly { name: string }[]): string | undefined {
  return (namespaces.find((each) => each.name !== "default") ?? namespaces[0])?.name;
}

/** That namespace, once it is known; it stays while the page does, whatever happens meanwhile. */
export function useLikeliest(kind: "dataset" | "job", isAsked: boolean): string | undefined {
  const [kept, keep] = useState<string>();
  const isOpen = isAsked && kept === undefined;
  const jobs = useGet("/api/v1/jobs", isOpen ? { query: { limit: JOBS } } : null);
  const namespaces = useNamespaces().value?.namespaces;
  const isKnown = isOpen && namespaces && (jobs.value || jobs.problem);
  const found = isKnown ? (likeliest(kind, jobs.value?.jobs ?? []) ?? first(namespaces)) : undefined;
  if (found !== undefined) keep(found);
  return kept;
}
