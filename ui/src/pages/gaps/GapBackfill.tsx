/** A backfill of a range of lots by the arc that makes the dataset. */
import type { EntityId } from "../../api/client";
import { StartBackfillButton, BackfillPlan, useBackfill } from "../../actions/backfill";
import { useGet } from "../../api/queries";
import { Button } from "../../kit/Button";
import { JobLink } from "../../kit/links";
import { IfAllowed } from "../../kit/IfAllowed";
import { Panel } from "../../kit/Panel";
import { EmptyState, ProblemNote } from "../../kit/Async";

interface Props {
  dataset: EntityId;
  first: string;
  last: string;
  /** Whether the range is all of the shown lots instead of one gap. */
  isAll: boolean;
}

export function GapBackfill({ dataset, first, last, isAll }: Props) {
  const arcs = useGet("/api/v1/arcs", {}).data?.arcs;
  const maker = arcs?.find((arc) =>
    arc.outputs.some(
      (output) =>
        output.dataset === dataset.name &&
        (output.namespace || arc.namespace) === dataset.namespace,
    ),
  );
  if (!arcs) return null;
  return (
    <Panel
      title={isAll ? "Backfill all failed and missing lots" : "Backfill this range"}
      aside={
        maker && (
          <>
            made by <JobLink of={maker} />
          </>
        )
      }
    >
      {maker ? (
        <IfAllowed hasNote>
          <BackfillForm
            key={`${first} ${last}`}
            arc={{ namespace: maker.namespace, name: maker.name }}
            first={first}
            last={last}
          />
        </IfAllowed>
      ) : (
        <EmptyState icon="gear" title="No arc makes this dataset">
          Its lots come from outside, or from a job that is not an arc. Ask their producer to send
          them again.
        </EmptyState>
      )}
    </Panel>
  );
}

function BackfillForm({ arc, first, last }: { arc: EntityId; first: string; last: string }) {
  const { body, change, plan, problem, preview, start } = useBackfill(arc, {
    from: first,
    to: last,
    maxRunning: 4,
  });
  return (
    <>
      <form className="body backfill-form" onSubmit={(event) => void preview(event)}>
        <label>
          First lot
          <input
            className="field mono"
            required
            value={body.from ?? ""}
            onChange={(event) => change({ from: event.target.value })}
          />
        </label>
        <label>
          Last lot
          <input
            className="field mono"
            required
            value={body.to ?? ""}
            onChange={(event) => change({ to: event.target.value })}
          />
        </label>
        <label>
          At once
          <input
            className="field"
            type="number"
            min={1}
            max={1000}
            value={body.maxRunning ?? 4}
            onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })}
          />
        </label>
        <Button type="submit" kind={plan ? "plain" : "primary"} icon="search">
          Preview
        </Button>
        {plan && <StartBackfillButton plan={plan} start={start} />}
      </form>
      {problem && <ProblemNote problem={problem} />}
      {plan && <BackfillPlan plan={plan} arc={arc} />}
    </>
  );
}
