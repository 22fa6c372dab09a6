/** One lot in short: how it stands, why it is not there, who reads it. */
import { heldLotOf, ReleaseWork, RetryLot } from "../actions/work";
import { useGet } from "../api/hooks";
import { Button } from "../kit/Button";
import { JobName, RunName } from "../kit/Names";
import { Facts, Panel } from "../kit/Panel";
import { Shown } from "../kit/Shown";
import { Status } from "../kit/Status";
import { Time } from "../kit/Time";
import { spanOf } from "./intervals";
import { ToLot } from "./LotsPanel";

interface Props {
  dataset: { readonly namespace: string; readonly name: string };
  lot: string;
  /** Given beside other lots; the lot's own page, whose head says how it stands, has none. */
  onClose?: () => void;
}

export function LotSummary({ dataset, lot, onClose }: Props) {
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const isInterval = spanOf(lot) !== null;
  const gaps = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps", isInterval ? { path, query: { from: lot, to: lot } } : null);
  const gap = gaps.value?.ranges[0];
  const ofGap = gap?.cause?.why;
  // Of a lot that nobody has begun to make there is nothing to show but why. One that is held was
  // begun if its job is out of tries with it, or if it is there and locked.
  const isMade = ofGap?.reasons.some((each) => each.kind === "output_locked" && each.namespace === dataset.namespace && each.name === dataset.name);
  const isHeldUntried = gap?.kind === "held" && ofGap?.reasons.some((each) => each.kind === "held_lot") && !isMade;
  const isBegun = gap?.kind !== "missing" && gap?.kind !== "waiting" && !isHeldUntried;
  const isKnown = isInterval ? gaps.value !== undefined && isBegun : true;
  const found = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}", isKnown ? { path: { ...path, lot } } : null);
  // No gap tells of a lot with a free name: its maker does, if it is not there, and its history, if it is held.
  const { job: maker, status } = (!isInterval && found.value) || { job: null, status: null };
  const isAwaited = maker && status !== "READY" && status !== "HOLD";
  const ofMaker = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", isAwaited ? { path: { namespace: maker.namespace, job: maker.name, lot } } : null).value;
  const why = ofGap ?? ofMaker;
  return (
    <Panel
      title={onClose ? <span className="mono">{lot}</span> : "How it stands"}
      aside={
        onClose && (
          <>
            {spanOf(lot)}
            <ToLot dataset={dataset} lot={lot} />
            <Button kind="quiet" icon="cross" aria-label="close the lot" onClick={onClose} />
          </>
        )
      }
    >
      <div className="body stack">
        {gap && (
          <div className="row">
            {onClose && <Status of={gap.kind} />}
            <span>{gap.cause?.sentence}</span>
          </div>
        )}
        {ofMaker && <p>{ofMaker.sentence}</p>}
        {status === "HOLD" && <HeldBy dataset={dataset} lot={lot} />}
        {why && (why.state === "HELD" || why.state === "LATER") && (
          <div className="row">
            {why.state === "HELD" ? <ReleaseWork work={{ ...why, heldLotOf: heldLotOf(why) }} /> : <RetryLot namespace={why.namespace} job={why.job} lot={why.lot} />}
          </div>
        )}
        {isKnown && (
          <Shown of={found}>
            {(value) => (
              <Facts
                of={[
                  ...(onClose && !gap ? [["Status", <Status of={value.status} />] as const] : []),
                  ["Made by", value.job && <JobName of={value.job} />],
                  ["Run", value.run && <RunName of={value.run} />],
                  ["Since", <Time at={value.since} />],
                  ["Locked for", value.locks.join(", ") || "nobody"],
                  ["Read by", value.consumers.length ? value.consumers.map((each) => <div key={each.job}><JobName of={{ namespace: each.namespace, name: each.job }} /> <Status of={each.status} /></div>) : "nobody yet"],
                ]}
              />
            )}
          </Shown>
        )}
      </div>
    </Panel>
  );
}

/** Who held a lot last, and why, as its history says. */
function HeldBy({ dataset, lot }: Pick<Props, "dataset" | "lot">) {
  const path = { namespace: dataset.namespace, dataset: dataset.name, lot };
  const log = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/log", { path, query: { limit: 500 } });
  const hold = log.value?.entries.find((entry) => entry.action === "hold" && entry.job === null && entry.dataset === dataset.name);
  if (!hold) return null;
  return (
    <div className="row">
      <Status of="HELD" />
      <span>
        by {hold.who}: {hold.why || "no reason given"} (<Time at={hold.at} />)
      </span>
    </div>
  );
}
