/** Names of things, as links to their pages. */
import { Link } from "../router/Link";
import { datasetPlace, jobPlace, lotPlace, runPlace, workPlace } from "../router/places";
import { shorten } from "./words";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

export function DatasetName({ of: id, whole = false }: { of: Named; whole?: boolean }) {
  return (
    <Link className="name" to={datasetPlace(id)} title={`${id.namespace} / ${id.name}`}>
      {whole && <span className="faint">{id.namespace} / </span>}
      {id.name}
    </Link>
  );
}

export function JobName({ of: id, whole = false }: { of: Named; whole?: boolean }) {
  return (
    <Link className="name" to={jobPlace(id)} title={`${id.namespace} / ${id.name}`}>
      {whole && <span className="faint">{id.namespace} / </span>}
      {id.name}
    </Link>
  );
}

export function RunName({ of: id }: { of: string }) {
  return (
    <Link className="name mono" to={runPlace(id)} title={id}>
      {id.slice(-12)}
    </Link>
  );
}

export function LotName({ dataset, lot }: { dataset: Named; lot: string }) {
  return (
    <Link className="name mono" to={lotPlace(dataset, lot)} title={lot}>
      {shorten(lot, 28)}
    </Link>
  );
}

export function WorkName({ job, lot }: { job: Named; lot: string }) {
  return (
    <Link className="name mono" to={workPlace(job, lot)} title={lot}>
      {shorten(lot, 28)}
    </Link>
  );
}
