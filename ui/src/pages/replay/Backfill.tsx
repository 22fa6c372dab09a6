/** A backfill and its progress. */
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { Icon } from "../../kit/Icon";
import { JobLink, WorkLink } from "../../kit/links";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural, span } from "../../kit/format";
import { jobAddress, workAddress } from "../../router/addresses";
import { BackfillShare, lotsOf, BackfillActions } from "./progress";

export default function Backfill({ id = "" }: { id?: string }) {
  const result = useGet("/api/v1/backfills/{backfill}", { path: { backfill: id } });
  return (
    <Async of={result}>
      {(backfill) => {
        const arc = { namespace: backfill.namespace, name: backfill.arc };
        return (
          <>
            <PageHead
              kind={
                <>
                  <Icon name="replay" size={14} /> Backfill of <JobLink of={arc} />
                </>
              }
              title={<span className="mono">{lotsOf(backfill)}</span>}
              actions={
                <>
                  <ButtonLink to={jobAddress(arc, { tab: "lots" })} icon="table">
                    Lots
                  </ButtonLink>
                  <BackfillActions backfill={backfill} />
                </>
              }
            >
              <Status of={backfill.state} />
              <span>
                started <Time at={backfill.createdAt} /> by {backfill.who}
                {backfill.why && `: ${backfill.why}`}
              </span>
            </PageHead>
            <div className="stack">
              <Panel
                title="Progress"
                aside={`${count(backfill.lookedAt)} of ${plural(backfill.count, "lot")} checked`}
              >
                <div className="body stack">
                  <BackfillShare of={backfill} />
                  {backfill.isCut && (
                    <p className="faint">
                      The backfill does not cover all lots that need it. When it has ended, start
                      another.
                    </p>
                  )}
                  <Facts
                    of={[
                      ["Scope", backfill.scope === "all" ? "all lots" : backfill.scope],
                      ["Already good", count(backfill.good)],
                      ["Done", count(backfill.done)],
                      [
                        "Running",
                        `${count(backfill.going)} of ${count(backfill.maxRunning)} at a time`,
                      ],
                      ["Waiting for inputs", count(backfill.waiting)],
                      ["On hold", count(backfill.held)],
                      ["Failed", count(backfill.failed)],
                      ["Duration", span(backfill.seconds)],
                      [
                        "Lots an hour",
                        backfill.lotsPerHour === null
                          ? "unknown"
                          : count(Math.round(backfill.lotsPerHour)),
                      ],
                      [
                        "Order",
                        backfill.interval === null
                          ? backfill.newestFirst
                            ? "last lot first"
                            : "first lot first"
                          : backfill.newestFirst
                            ? "newest first"
                            : "oldest first",
                      ],
                    ]}
                  />
                </div>
              </Panel>
              {backfill.failures.length > 0 && (
                <Panel title="Failed lots" aside={plural(backfill.failed, "lot")}>
                  <Rows
                    of={backfill.failures}
                    label="failed lots"
                    rows={12}
                    to={(each) => workAddress(arc, each.lot)}
                    columns={[
                      {
                        title: "lot",
                        cell: (each) => <WorkLink job={arc} lot={each.lot} />,
                        width: "minmax(8rem, 1fr)",
                      },
                      {
                        title: "error",
                        cell: (each) => <span title={each.error}>{each.error}</span>,
                        width: "minmax(8rem, 3fr)",
                      },
                    ]}
                  />
                </Panel>
              )}
            </div>
          </>
        );
      }}
    </Async>
  );
}
