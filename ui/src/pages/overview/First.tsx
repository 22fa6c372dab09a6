import { Empty } from "../../kit/Shown";

/** Where nothing has come yet: what to do first. */
export function First() {
  return (
    <Empty icon="home" title="Nothing has come yet">
      Tell this server of runs, with any OpenLineage client:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
      Or let it make data lot by lot, from arcs in a file:
      <pre>{"penstock arcs apply arcs.toml\npenstock arcs start"}</pre>
      Or hand in files, in batches:
      <pre>{"penstock ingest collections set COLLECTION --dataset DATASET\npenstock ingest submit COLLECTION FILE\npenstock ingest start"}</pre>
    </Empty>
  );
}
