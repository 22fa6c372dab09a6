/** The overview: the numbers of each state, and the newest problems with their remedies. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Bars } from "../../kit/Bars";
import { PageHead, Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import "./overview.css";
import { Problems } from "./Problems";
import { Queues } from "./Queues";
import { useSources } from "./sources";
import { Tiles } from "./Tiles";

export default function Overview() {
  const standing = useGet("/api/v1/standing", {});
  return (
    <>
      <PageHead title="Overview" />
      <Async of={standing}>{(now) => <OverviewPanels now={now} />}</Async>
    </>
  );
}

function OverviewPanels({ now }: { now: Schemas["SystemOverview"] }) {
  const sources = useSources(now);
  return (
    <div className="stack">
      <Tiles now={now} sources={sources} />
      <div className="overview-halves">
        <Problems now={now} sources={sources} />
        <div className="stack">
          <Queues now={now} queue={sources.queue} />
          <Panel
            title="Lots published per hour"
            aside={`${now.hours.reduce((sum, hour) => sum + (hour.counts["published"] ?? 0), 0).toLocaleString("en")} in 24 hours`}
          >
            <Bars
              label="lots published in each of the last 24 hours"
              bars={now.hours.map((hour) => ({
                label: `${hour.start.slice(11, 16)} UTC`,
                parts: [
                  {
                    tone: "good" as const,
                    word: "published",
                    value: hour.counts["published"] ?? 0,
                  },
                ],
              }))}
            />
          </Panel>
          <Events />
        </div>
      </div>
    </div>
  );
}

/** The run events per hour. */
function Events() {
  const stats = useGet("/api/v1/stats/lineage-events", { query: { period: "DAY" } });
  const hours = stats.data;
  if (!hours) return null;
  return (
    <Panel
      title="Run events received per hour"
      aside={`${hours.reduce((sum, hour) => sum + hour.count, 0).toLocaleString("en")} in 24 hours`}
    >
      <Bars
        label="run events received in each of the last 24 hours"
        bars={hours.map((hour) => ({
          label: `${hour.startInterval.slice(11, 16)} UTC`,
          parts: [
            { tone: "good" as const, word: "complete", value: hour.complete },
            { tone: "idle" as const, word: "start or other", value: hour.start + hour.other },
            { tone: "bad" as const, word: "fail or abort", value: hour.fail + hour.abort },
          ],
        }))}
      />
    </Panel>
  );
}
