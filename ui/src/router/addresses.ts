/** The addresses of the pages of things. */
import type { EntityId } from "../api/client";
import { address, type Changes } from "./router";

export const datasetAddress = ({ namespace, name }: EntityId, query: Changes = {}): string =>
  address(["datasets", namespace, name], query);

export const lotAddress = (dataset: EntityId, lot: string, query: Changes = {}): string =>
  address(["datasets", dataset.namespace, dataset.name, "lots", lot], query);

/** The gaps of a dataset, from a lot on. */
export const gapsAddress = ({ namespace, name }: EntityId, from: string): string =>
  address(["gaps"], { namespace, dataset: name, from });

export const jobAddress = ({ namespace, name }: EntityId, query: Changes = {}): string =>
  address(["jobs", namespace, name], query);

/** The work of a job on a lot. */
export const workAddress = (job: EntityId, lot: string, query: Changes = {}): string =>
  address(["jobs", job.namespace, job.name, "lots", lot], query);

export const runAddress = (run: string, query: Changes = {}): string =>
  address(["runs", run], query);

export const lineageAddress = (node: string, query: Changes = {}): string =>
  address(["lineage"], { node, ...query });

/** The versions of a stored object, and the files of one of them. */
export const objectAddress = (ark: string, version?: number | null): string =>
  address(["ingest"], { tab: "stored", ark, ...(version ? { version: String(version) } : {}) });

export const datasetNode = ({ namespace, name }: EntityId): string =>
  `dataset:${namespace}:${name}`;

export const jobNode = ({ namespace, name }: EntityId): string => `job:${namespace}:${name}`;
