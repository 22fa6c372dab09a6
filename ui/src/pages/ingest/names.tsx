/** Batches, ingest jobs and collections, as links to their pages. */
import { Link } from "../../router/Link";
import { address, type Changes } from "../../router/router";

export const batchPlace = (id: string, query: Changes = {}): string => address(["ingest", "batches", id], query);
export const ingestJobPlace = (id: string): string => address(["ingest", "jobs", id]);
export const collectionPlace = (name: string, query: Changes = {}): string => address(["ingest", "collections", name], query);

export function BatchName({ of: id }: { of: string }) {
  return (
    <Link className="name mono" to={batchPlace(id)}>
      {id}
    </Link>
  );
}

export function IngestJobName({ of: id, label }: { of: string; label?: string }) {
  return (
    <Link className={`name ${label ? "" : "mono"}`} to={ingestJobPlace(id)} title={id}>
      {label || id}
    </Link>
  );
}

export function CollectionName({ of: name }: { of: string }) {
  return (
    <Link className="name" to={collectionPlace(name)}>
      {name}
    </Link>
  );
}
