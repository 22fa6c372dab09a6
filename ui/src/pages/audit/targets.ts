/** The address of the target of an entry of the audit log. */
import { datasetAddress, jobAddress, lotAddress, workAddress } from "../../router/addresses";
import { address } from "../../router/router";

const BATCH = /^bid\w+$/;
const INGEST_JOB = /^jid\w+$/;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NODE = /^(dataset|job):(.+):([^:\s]+)(?: (?:lot )?(\S+))?$/;
const ARC = /^([^/\s]+)\/(\S+)$/;

/** Find the page of a target; null if it has none. */
export function targetAddress(action: string, target: string): string | null {
  if (BATCH.test(target)) return address(["ingest", "batches", target]);
  if (INGEST_JOB.test(target)) return address(["ingest", "jobs", target]);
  if (ID.test(target))
    return action.includes("backfill")
      ? address(["backfills", target])
      : address(["replay", target]);
  if (/^(put|hold|release) collection/.test(action))
    return address(["ingest", "collections", target]);
  if (action === "apply arc") return arcAddress(target);
  const match = NODE.exec(target);
  if (!match) return null;
  const [, kind, namespace = "", name = "", lot] = match;
  const id = { namespace, name };
  if (kind === "dataset") return lot ? lotAddress(id, lot) : datasetAddress(id);
  return lot ? workAddress(id, lot) : jobAddress(id);
}

function arcAddress(target: string): string | null {
  const [, namespace, name] = ARC.exec(target) ?? [];
  return namespace && name ? jobAddress({ namespace, name }) : null;
}
