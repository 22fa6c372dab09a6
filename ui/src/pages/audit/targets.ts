/** What an entry of the audit log was done to, as the address of its page. */
import { datasetPlace, jobPlace, lotPlace, workPlace } from "../../router/places";
import { address } from "../../router/router";

const BATCH = /^bid\w+$/;
const INGEST_JOB = /^jid\w+$/;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NODE = /^(dataset|job):(.+):([^:\s]+)(?: (?:lot )?(\S+))?$/;
const ARC = /^([^/\s]+)\/(\S+)$/;

/** Where a target is shown; null if it has no page. */
export function targetPlace(action: string, target: string): string | null {
  if (BATCH.test(target)) return address(["ingest", "batches", target]);
  if (INGEST_JOB.test(target)) return address(["ingest", "jobs", target]);
  if (ID.test(target)) return action.includes("backfill") ? address(["backfills", target]) : address(["replay", target]);
  if (/^(put|hold|release) collection/.test(action)) return address(["ingest", "collections", target]);
  if (action === "apply arc") return arcPlace(target);
  const found = NODE.exec(target);
  if (!found) return null;
  const [, kind, namespace = "", name = "", lot] = found;
  const id = { namespace, name };
  if (kind === "dataset") return lot ? lotPlace(id, lot) : datasetPlace(id);
  return lot ? workPlace(id, lot) : jobPlace(id);
}

function arcPlace(target: string): string | null {
  const [, namespace, name] = ARC.exec(target) ?? [];
  return namespace && name ? jobPlace({ namespace, name }) : null;
}
