/** A summary of one lot: its state, why it is missing, and the jobs that read it. */
import { heldLotOf, EndWorkHold, RetryButton } from "../actions/work";
import { useGet } from "../api/queries";
import { Button } from "../kit/Button";
import { JobLink, RunLink } from "../kit/links";
import { Facts, Panel } from "../kit/Panel";
import { Async } from "../kit/Async";
import { Status } from "../kit/Status";
import { Time } from "../kit/Time";
import { spanOf } from "./intervals";
import { LotButton } from "./LotsPanel";

interface Props {
  dataset: { readonly namespace: string; readonly name: string };
  lot: string;
  /** Set beside other lots. On the lot's own page the head shows the state. */
  onClose?: () => void;
}

export function LotSummary({ dataset, lot, onClose }: Props) {
  const path = { namespace: dataset.namespace, dataset: dataset.name };
  const isInterval = spanOf(lot) !== null;
  const gaps = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/gaps",
    isInterval ? { path, query: { from: lot, to: lot } } : null,
  );
  const gap = gaps.data?.ranges[0];
  const ofGap = gap?.cause?.why;
  // A lot that no job has started has no record, only a cause. A held lot was started if its job is
  // out of tries, or if it exists and is locked.
  const isMade = ofGap?.reasons.some(
    (each) =>
      each.kind === "output_locked" &&
      each.namespace === dataset.namespace &&
      each.name === dataset.name,
  );
  const isHeldUntried =
    gap?.kind === "held" && ofGap?.reasons.some((each) => each.kind === "held_lot") && !isMade;
  const isBegun = gap?.kind !== "missing" && gap?.kind !== "waiting" && !isHeldUntried;
  const isKnown = isInterval ? gaps.data !== undefined && isBegun : true;
  const result = useGet(
    "/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}",
    isKnown ? { path: { ...path, lot } } : null,
  );
  // A lot with a free name is in no gap: its job explains a missing lot, its history a held one.
  const { job: maker, status } = (!isInterval && result.data) || { job: null, status: null };
  const isAwaited = maker && status !== "READY" && status !== "HOLD";
  const ofMaker = useGet(
    "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why",
    isAwaited ? { path: { namespace: maker.namespace, job: maker.name, lot } } : null,
  ).data;
  const why = ofGap ?? ofMaker;
  return (
    <Panel
      title={onClose ? <span className="mono">{lot}</span> : "State"}
      aside={
        onClose && (
          <>
            {spanOf(lot)}
            <LotButton dataset={dataset} lot={lot} />
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
        {status === "HOLD" && <HoldNote dataset={dataset} lot={lot} />}
        {why && (why.state === "HELD" || why.state === "RETRYABLE") && (
          <div className="row">
            {why.state === "HELD" ? (
              <EndWorkHold
                namespace={why.namespace}
                job={why.job}
                lot={why.lot}
                heldLotOf={heldLotOf(why)}
              />
            ) : (
              <RetryButton namespace={why.namespace} job={why.job} lot={why.lot} />
            )}
          </div>
        )}
        {isKnown && (
          <Async of={result}>
            {(value) => (
              <Facts
                of={[
                  ...(onClose && !gap ? [["Status", <Status of={value.status} />] as const] : []),
                  ["Made by", value.job && <JobLink of={value.job} />],
                  ["Run", value.run && <RunLink of={value.run} />],
                  ["Since", <Time at={value.since} />],
                  ["Locked for", value.locks.join(", ") || "no one"],
                  [
                    "Read by",
                    value.consumers.length
                      ? value.consumers.map((each) => (
                          <div key={each.job}>
                            <JobLink of={{ namespace: each.namespace, name: each.job }} />{" "}
                            <Status of={each.status} />
                          </div>
                        ))
                      : "no job yet",
                  ],
                ]}
              />
            )}
          </Async>
        )}
      </div>
    </Panel>
  );
}

/** The last hold of a lot, from its history. */
function HoldNote({ dataset, lot }: Pick<Props, "dataset" | "lot">) {
  const path = { namespace: dataset.namespace, dataset: dataset.name, lot };
  const log = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/log", {
    path,
    query: { limit: 500 },
  });
  const hold = log.data?.entries.find(
    (entry) => entry.action === "hold" && entry.job === null && entry.dataset === dataset.name,
  );
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
