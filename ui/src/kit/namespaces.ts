/** The namespaces, and the default one where none is chosen. */
import { useState } from "react";
import { useGet } from "../api/queries";

interface InNamespace {
  readonly namespace: string;
}

interface JobDatasets extends InNamespace {
  readonly inputs: readonly InNamespace[];
  readonly outputs: readonly InNamespace[];
}

const JOBS = 10;

export const useNamespaces = () => useGet("/api/v1/namespaces", { query: { limit: 1000 } });

/** Find the namespace of the last activity by the jobs that changed last. */
export function defaultNamespace(
  kind: "dataset" | "job",
  jobs: readonly JobDatasets[],
): string | undefined {
  if (kind === "job") return jobs[0]?.namespace;
  return [...jobs.flatMap((job) => job.outputs), ...jobs.flatMap((job) => job.inputs)][0]
    ?.namespace;
}

/** Find the first namespace other than `default`, which every catalog has. */
function first(namespaces: readonly { name: string }[]): string | undefined {
  return (namespaces.find((each) => each.name !== "default") ?? namespaces[0])?.name;
}

/** The default namespace once it is known; it then stays for the life of the page. */
export function useDefaultNamespace(
  kind: "dataset" | "job",
  isNeeded: boolean,
): string | undefined {
  const [chosen, setChosen] = useState<string>();
  const isOpen = isNeeded && chosen === undefined;
  const jobs = useGet("/api/v1/jobs", isOpen ? { query: { limit: JOBS } } : null);
  const namespaces = useNamespaces().data?.namespaces;
  const isKnown = isOpen && namespaces && (jobs.data || jobs.error);
  const candidate = isKnown
    ? (defaultNamespace(kind, jobs.data?.jobs ?? []) ?? first(namespaces))
    : undefined;
  if (candidate !== undefined) setChosen(candidate);
  return chosen;
}
