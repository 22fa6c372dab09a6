/** The names of things as links to their pages. */
import type { EntityId } from "../api/client";
import { Link } from "../router/Link";
import {
  datasetAddress,
  jobAddress,
  lotAddress,
  runAddress,
  workAddress,
} from "../router/addresses";
import { shorten } from "./format";

export function DatasetLink({ of: id, whole = false }: { of: EntityId; whole?: boolean }) {
  return (
    <Link className="name" to={datasetAddress(id)} title={`${id.namespace} / ${id.name}`}>
      {whole && <span className="faint">{id.namespace} / </span>}
      {id.name}
    </Link>
  );
}

export function JobLink({ of: id, whole = false }: { of: EntityId; whole?: boolean }) {
  return (
    <Link className="name" to={jobAddress(id)} title={`${id.namespace} / ${id.name}`}>
      {whole && <span className="faint">{id.namespace} / </span>}
      {id.name}
    </Link>
  );
}

export function RunLink({ of: id }: { of: string }) {
  return (
    <Link className="name mono" to={runAddress(id)} title={id}>
      {id.slice(-12)}
    </Link>
  );
}

export function LotLink({ dataset, lot }: { dataset: EntityId; lot: string }) {
  return (
    <Link className="name mono" to={lotAddress(dataset, lot)} title={lot}>
      {shorten(lot, 28)}
    </Link>
  );
}

export function WorkLink({ job, lot }: { job: EntityId; lot: string }) {
  return (
    <Link className="name mono" to={workAddress(job, lot)} title={lot}>
      {shorten(lot, 28)}
    </Link>
  );
}
