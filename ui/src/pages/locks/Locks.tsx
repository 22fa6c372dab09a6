/** The claims, the holds, and the reasons why a lot waits. */
import { useGet } from "../../api/queries";
import { PageHead, Tabs } from "../../kit/Panel";
import { useSearchParams } from "../../router/router";
import { Claims } from "./Claims";
import { Holds } from "./Holds";
import { WhyForm } from "./WhyForm";

export default function Locks() {
  const [query] = useSearchParams();
  const tab = query.get("tab") ?? "claims";
  const claims = useGet("/api/v1/locks", { query: { limit: 0 } }).data?.totalCount;
  const lots = useGet("/api/v1/held-lots", { query: { limit: 0 } }).data?.totalCount;
  const now = useGet("/api/v1/standing", {}).data;
  const held =
    lots !== undefined && now
      ? lots + now.holds.length + now.work.reduce((sum, job) => sum + job.held, 0)
      : undefined;
  return (
    <>
      <PageHead title="Locks" />
      <Tabs
        tabs={[
          { id: "claims", label: "Claims", count: claims },
          { id: "held", label: "Holds", count: held },
          { id: "why", label: "Why does it wait?" },
        ]}
      />
      <div className="stack">
        {tab === "claims" && <Claims />}
        {tab === "held" && <Holds />}
        {tab === "why" && <WhyForm />}
      </div>
    </>
  );
}
