/** The ingest queue: its stages, its holds, its batches and jobs. */
import { useGet } from "../../api/queries";
import { Icon } from "../../kit/Icon";
import { PageHead, Tabs } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Time } from "../../kit/Time";
import { Link } from "../../router/Link";
import { address, useSearchParams } from "../../router/router";
import { HoldQueueButton, ReleaseHoldsButton } from "./actions";
import { Batches } from "./Batches";
import { Collections } from "./Collections";
import { Flow } from "./Flow";
import "./ingest.css";
import { IngestJobs } from "./IngestJobs";
import { collectionAddress } from "./links";
import { jobsIn, type Tally } from "./tally";
import { StoredTab } from "./StoredTab";

export default function Ingest() {
  const [query] = useSearchParams();
  const queue = useGet("/api/v1/ingest/queue", {});
  const tab = query.get("tab") ?? "batches";
  const tally: Tally = queue.data?.tally ?? {};
  return (
    <>
      <PageHead
        title="Ingest"
        actions={
          queue.data && (
            <>
              {jobsIn(tally, "held") > 0 && <ReleaseHoldsButton />}
              <HoldQueueButton isHeld={queue.data.held !== null} />
            </>
          )
        }
      />
      <Async of={queue}>
        {(now) => (
          <>
            {now.held && (
              <div className="trouble tone-held stopped-note" role="note">
                <Icon name="pause" />
                <div>
                  <strong>The ingest queue is on hold</strong>
                  <p>
                    {now.held.who}: {now.held.why || "no reason given"} (
                    <Time at={now.held.since} />)
                  </p>
                </div>
              </div>
            )}
            {now.collectionsHeld.map((hold) => (
              <div key={hold.name} className="trouble tone-held stopped-note" role="note">
                <Icon name="hand" />
                <div>
                  <strong>
                    Collection <Link to={collectionAddress(hold.name)}>{hold.name}</Link> is on hold
                  </strong>
                  <p>
                    {hold.who}: {hold.why || "no reason given"} (<Time at={hold.since} />)
                  </p>
                </div>
              </div>
            ))}
            {now.tally && (
              <Flow
                tally={now.tally}
                to={(state) => address(["ingest"], { tab: "jobs", status: state })}
                chosen={tab === "jobs" ? (query.get("status") ?? "failed") : null}
              />
            )}
          </>
        )}
      </Async>
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
        {tab === "stored" && <StoredTab />}
      </div>
    </>
  );
}
