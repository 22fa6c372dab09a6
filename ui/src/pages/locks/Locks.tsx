/** Who holds what and for how long, what is held back, and why any lot waits. */
import { useGet } from "../../api/hooks";
import { PageHead, Tabs } from "../../kit/Panel";
import { useQuery } from "../../router/router";
import { Claims } from "./Claims";
import { Held } from "./Held";
import { WhyAny } from "./WhyAny";

export default function Locks() {
  const [query] = useQuery();
  const tab = query.get("tab") ?? "claims";
  const claims = useGet("/api/v1/locks", { query: { limit: 0 } }).value?.totalCount;
  const lots = useGet("/api/v1/held-lots", { query: { limit: 0 } }).value?.totalCount;
  const now = useGet("/api/v1/standing", {}).value;
  const held = lots !== undefined && now ? lots + now.holds.length + now.work.reduce((sum, job) => sum + job.held, 0) : undefined;
  return (
    <>
      <PageHead title="Locks" />
      <Tabs
        tabs={[
          { id: "claims", label: "Claims", count: claims },
          { id: "held", label: "Held", count: held },
          { id: "why", label: "Why does it wait?" },
        ]}
      />
      <div className="stack">
        {tab === "claims" && <Claims />}
        {tab === "held" && <Held />}
        {tab === "why" && <WhyAny />}
      </div>
    </>
  );
}
