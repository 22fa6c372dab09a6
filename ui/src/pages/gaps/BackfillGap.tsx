/** Runs the arc that makes a dataset on a range of its lots: seen first, then begun. */
import { BeginBackfill, Planned, useBackfill } from "../../actions/backfill";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { JobName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Empty, Trouble } from "../../kit/Shown";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

interface Props {
  dataset: Named;
  first: string;
  last: string;
  /** Whether it is the whole range that is shown, and not one gap. */
  isAll: boolean;
}

export function BackfillGap({ dataset, first, last, isAll }: Props) {
  const arcs = useGet("/api/v1/arcs", {}).value?.arcs;
  const maker = arcs?.find((arc) => arc.outputs.some((output) => output.dataset === dataset.name && (output.namespace || arc.namespace) === dataset.namespace));
  if (!arcs) return null;
  return (
    <Panel title={isAll ? "Backfill everything that failed or is missing" : "Backfill this range"} aside={maker && <>made by <JobName of={maker} /></>}>
      {maker ? (
        <Offered says>
          <Asked key={`${first} ${last}`} arc={{ namespace: maker.namespace, name: maker.name }} first={first} last={last} />
        </Offered>
      ) : (
        <Empty icon="gear" title="No arc makes this dataset">
          Its lots come from outside, or from a job that is not an arc: let those who make it send them again.
        </Empty>
      )}
    </Panel>
  );
}

function Asked({ arc, first, last }: { arc: Named; first: string; last: string }) {
  const { body, change, plan, problem, preview, begin } = useBackfill(arc, { from: first, to: last, maxRunning: 4 });
  return (
    <>
      <form className="body backfill-form" onSubmit={(event) => void preview(event)}>
        <label>
          First lot
          <input className="field mono" required value={body.from ?? ""} onChange={(event) => change({ from: event.target.value })} />
        </label>
        <label>
          Last lot
          <input className="field mono" required value={body.to ?? ""} onChange={(event) => change({ to: event.target.value })} />
        </label>
        <label>
          At once
          <input className="field" type="number" min={1} max={1000} value={body.maxRunning ?? 4} onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })} />
        </label>
        <Button type="submit" kind={plan ? "plain" : "primary"} icon="search">
          Preview
        </Button>
        {plan && <BeginBackfill plan={plan} begin={begin} />}
      </form>
      {problem && <Trouble problem={problem} />}
      {plan && <Planned plan={plan} arc={arc} />}
    </>
  );
}
