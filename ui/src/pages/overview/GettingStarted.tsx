import { EmptyState } from "../../kit/Async";

/** The first steps on an empty server. */
export function GettingStarted() {
  return (
    <EmptyState icon="home" title="No data yet">
      Report runs with any OpenLineage client:
      <pre>export OPENLINEAGE_URL={window.location.origin}</pre>
      Or make data lot by lot with arcs from a file:
      <pre>{"penstock arcs apply arcs.toml\npenstock arcs start"}</pre>
      Or ingest files in batches:
      <pre>
        {
          "penstock ingest collections set COLLECTION --dataset DATASET\npenstock ingest submit COLLECTION FILE\npenstock ingest start"
        }
      </pre>
    </EmptyState>
  );
}
