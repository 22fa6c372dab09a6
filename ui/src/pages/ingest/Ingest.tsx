/** The ingest queue: what arrives, stage by stage, and who may go on. */
import { useGet } from "../../api/hooks";
import { Icon } from "../../kit/Icon";
import { PageHead, Tabs } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { Time } from "../../kit/Time";
import { Link } from "../../router/Link";
import { address, useQuery } from "../../router/router";
import { PauseQueue, ReleaseHeld } from "./actions";
import { Batches } from "./Batches";
import { Collections } from "./Collections";
import { Flow } from "./Flow";
import "./ingest.css";
import { IngestJobs } from "./IngestJobs";
import { collectionPlace } from "./names";
import { jobsIn, type Tally } from "./stages";
import { Stored } from "./Stored";

export default function Ingest() {
  const [query] = useQuery();
  const queue = useGet("/api/v1/ingest/queue", {});
  const tab = query.get("tab") ?? "batches";
  const tally: Tally = queue.value?.tally ?? {};
  return (
    <>
      <PageHead
        title="Ingest"
        actions={
          queue.value && (
            <>
              {jobsIn(tally, "held") > 0 && <ReleaseHeld />}
              <PauseQueue isHeld={queue.value.held !== null} />
            </>
          )
        }
      />
      <Shown of={queue}>
        {(now) => (
          <>
            {now.held && (
              <div className="trouble tone-held stopped-note" role="note">
                <Icon name="pause" />
                <div>
                  <strong>The whole queue is paused</strong>
                  <p>
                    {now.held.who}: {now.held.why || "no reason given"} (<Time at={now.held.since} />)
                  </p>
                </div>
              </div>
            )}
            {now.collectionsHeld.map((hold) => (
              <div key={hold.name} className="trouble tone-held stopped-note" role="note">
                <Icon name="hand" />
                <div>
                  <strong>
                    Collection <Link to={collectionPlace(hold.name)}>{hold.name}</Link> is held
                  </strong>
                  <p>
                    {hold.who}: {hold.why || "no reason given"} (<Time at={hold.since} />)
                  </p>
                </div>
              </div>
            ))}
            {now.tally && <Flow tally={now.tally} to={(state) => address(["ingest"], { tab: "jobs", status: state })} chosen={tab === "jobs" ? (query.get("status") ?? "failed") : null} />}
          </>
        )}
      </Shown>
      <Tabs
        tabs={[
          { id: "batches", label: "Batches" },
          { id: "jobs", label: "Jobs by stage" },
          { id: "collections", label: "Collections" },
          { id: "stored", label: "Stored" },
        ]}
      />
      <div className="stack">
        {tab === "batches" && <Batches />}
        {tab === "jobs" && <IngestJobs />}
        {tab === "collections" && <Collections />}
        {tab === "stored" && <Stored />}
      </div>
    </>
  );
}
