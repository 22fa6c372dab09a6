/** The names of batches, ingest jobs and collections as links to their pages. */
import { Link } from "../../router/Link";
import { address, type Changes } from "../../router/router";

export const batchAddress = (id: string, query: Changes = {}): string =>
  address(["ingest", "batches", id], query);
export const ingestJobAddress = (id: string): string => address(["ingest", "jobs", id]);
export const collectionAddress = (name: string, query: Changes = {}): string =>
  address(["ingest", "collections", name], query);

export function BatchLink({ of: id }: { of: string }) {
  return (
    <Link className="name mono" to={batchAddress(id)}>
      {id}
    </Link>
  );
}

export function IngestJobLink({ of: id, label }: { of: string; label?: string }) {
  return (
    <Link className={`name ${label ? "" : "mono"}`} to={ingestJobAddress(id)} title={id}>
      {label || id}
    </Link>
  );
}

export function CollectionLink({ of: name }: { of: string }) {
  return (
    <Link className="name" to={collectionAddress(name)}>
      {name}
    </Link>
  );
}
