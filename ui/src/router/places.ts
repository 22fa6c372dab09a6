/** The addresses of the things that have a page. */
import { address, type Changes } from "./router";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

export const datasetPlace = ({ namespace, name }: Named, query: Changes = {}): string =>
  address(["datasets", namespace, name], query);

export const lotPlace = (dataset: Named, lot: string, query: Changes = {}): string =>
  address(["datasets", dataset.namespace, dataset.name, "lots", lot], query);

/** Which lots of a dataset are not there, from a lot on. */
export const gapsPlace = ({ namespace, name }: Named, from: string): string =>
  address(["gaps"], { namespace, dataset: name, from });

export const jobPlace = ({ namespace, name }: Named, query: Changes = {}): string =>
  address(["jobs", namespace, name], query);

/** What one job does with one lot: why it waits, its parts, its attempts. */
export const workPlace = (job: Named, lot: string, query: Changes = {}): string =>
  address(["jobs", job.namespace, job.name, "lots", lot], query);

export const runPlace = (run: string, query: Changes = {}): string => address(["runs", run], query);

export const lineagePlace = (node: string, query: Changes = {}): string =>
  address(["lineage"], { node, ...query });

/** A stored object: its versions, and the files of one of them. */
export const objectPlace = (ark: string, version?: number | null): string =>
  address(["ingest"], { tab: "stored", ark, ...(version ? { version: String(version) } : {}) });

export const datasetNode = ({ namespace, name }: Named): string => `dataset:${namespace}:${name}`;

export const jobNode = ({ namespace, name }: Named): string => `job:${namespace}:${name}`;
