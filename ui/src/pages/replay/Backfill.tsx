/** One backfill as it goes. */
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { JobName, WorkName } from "../../kit/Names";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, span } from "../../kit/words";
import { jobPlace, workPlace } from "../../router/places";
import { BackfillShare, lotsOf, SteerBackfill } from "./progress";

export default function Backfill({ id = "" }: { id?: string }) {
  const found = useGet("/api/v1/backfills/{backfill}", { path: { backfill: id } });
  return (
    <Shown of={found}>
      {(backfill) => {
        const arc = { namespace: backfill.namespace, name: backfill.arc };
        return (
          <>
            <PageHead
              kind={
                <>
                  <Icon name="replay" size={14} /> Backfill of <JobName of={arc} />
                </>
              }
              title={
                <span className="mono">
                  {lotsOf(backfill)}
                </span>
              }
              actions={
                <>
                  <ButtonLink to={jobPlace(arc, { tab: "lots" })} icon="table">
                    Its lots
                  </ButtonLink>
                  <SteerBackfill backfill={backfill} />
                </>
              }
            >
              <Status of={backfill.state} />
              <span>
                begun <Time at={backfill.createdAt} /> by {backfill.who}
                {backfill.why && `: ${backfill.why}`}
              </span>
            </PageHead>
            <div className="stack">
              <Panel title="How far it is" aside={`${count(backfill.lookedAt)} of ${plural(backfill.count, "lot")} looked at`}>
                <div className="body stack">
                  <BackfillShare of={backfill} />
                  {backfill.isCut && <p className="faint">More lots need it: when this backfill has ended, start another.</p>}
                  <Facts
                    of={[
                      ["For lots that are", backfill.scope === "all" ? "of any kind" : backfill.scope],
                      ["Were good", count(backfill.good)],
                      ["Done", count(backfill.done)],
                      ["Going", `${count(backfill.going)} of ${count(backfill.maxRunning)} at a time`],
                      ["Waiting for inputs", count(backfill.waiting)],
                      ["Held", count(backfill.held)],
                      ["Failed", count(backfill.failed)],
                      ["Has run", span(backfill.seconds)],
                      ["Lots an hour", backfill.lotsPerHour === null ? "not known yet" : count(Math.round(backfill.lotsPerHour))],
                      ["Order", backfill.interval === null ? (backfill.newestFirst ? "last lot first" : "first lot first") : backfill.newestFirst ? "newest first" : "oldest first"],
                    ]}
                  />
                </div>
              </Panel>
              {backfill.failures.length > 0 && (
                <Panel title="What failed" aside={plural(backfill.failed, "lot")}>
                  <Rows
                    of={backfill.failures}
                    label="failed lots"
                    rows={12}
                    to={(each) => workPlace(arc, each.lot)}
                    columns={[
                      { title: "lot", cell: (each) => <WorkName job={arc} lot={each.lot} />, width: "minmax(8rem, 1fr)" },
                      { title: "error", cell: (each) => <span title={each.error}>{each.error}</span>, width: "minmax(8rem, 3fr)" },
                    ]}
                  />
                </Panel>
              )}
            </div>
          </>
        );
      }}
    </Shown>
  );
}
