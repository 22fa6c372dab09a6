/** Replays and backfills, newest first. */
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { JobName } from "../../kit/Names";
import { Offered } from "../../kit/Offered";
import { PageHead, Panel, Tabs } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { useQuery } from "../../router/router";
import { type Backfill, BackfillShare, backfillPlace, lotsOf, type Replay, replayPlace, ReplayShare, SteerBackfill, SteerReplay } from "./progress";

const REPLAYS: Column<Replay>[] = [
  { title: "state", cell: (each) => <Status of={each.state} />, width: "104px" },
  { title: "what was bad", cell: (each) => <Link className="name" to={replayPlace(each.id)} title={each.target}>{each.target}</Link>, width: "minmax(9rem, 1.6fr)" },
  { title: "how far", cell: (each) => <ReplayShare of={each} />, width: "minmax(5rem, 0.8fr)", wide: true },
  { title: "done", cell: (each) => `${count(each.done)} of ${count(each.steps)}`, width: "86px", end: true },
  { title: "by", cell: (each) => each.who, width: "80px", wide: true },
  { title: "why", cell: (each) => <span title={each.why}>{each.why}</span>, width: "minmax(6rem, 1fr)", wide: true },
  { title: "began", cell: (each) => <Time at={each.createdAt} />, width: "84px", wide: true },
  { title: "", acts: true, cell: (each) => <SteerReplay replay={each} />, width: "190px", end: true, wide: true },
];

const BACKFILLS: Column<Backfill>[] = [
  { title: "state", cell: (each) => <Status of={each.state} />, width: "104px" },
  { title: "lots", cell: (each) => <Link className="name mono" to={backfillPlace(each.id)}>{lotsOf(each)}</Link>, width: "minmax(9rem, 1.4fr)" },
  { title: "arc", cell: (each) => <JobName of={{ namespace: each.namespace, name: each.arc }} />, width: "minmax(6rem, 0.8fr)", wide: true },
  { title: "how far", cell: (each) => <BackfillShare of={each} />, width: "minmax(5rem, 0.8fr)", wide: true },
  { title: "done", cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`, width: "86px", end: true },
  { title: "by", cell: (each) => each.who, width: "80px", wide: true },
  { title: "began", cell: (each) => <Time at={each.createdAt} />, width: "84px", wide: true },
  { title: "", acts: true, cell: (each) => <SteerBackfill backfill={each} />, width: "190px", end: true, wide: true },
];

export default function Replays() {
  const [query] = useQuery();
  const tab = query.get("tab") ?? "replays";
  const replays = useGet("/api/v1/replays", { query: { limit: 200 } });
  const backfills = useGet("/api/v1/backfills", { query: { limit: 200 } });
  return (
    <>
      <PageHead
        title="Replays and backfills"
        actions={
          <>
            <ButtonLink to="/gaps" icon="search">
              Find gaps
            </ButtonLink>
            <Offered>
              <ButtonLink to="/replay/new" icon="replay" kind="primary">
                New replay
              </ButtonLink>
            </Offered>
          </>
        }
      />
      <Tabs
        tabs={[
          { id: "replays", label: "Replays", count: replays.value?.replays.length },
          { id: "backfills", label: "Backfills", count: backfills.value?.backfills.length },
        ]}
      />
      {tab === "replays" ? (
        <Shown of={replays}>
          {(value) =>
            value.replays.length === 0 ? (
              <Empty icon="replay" title="Nothing was replayed yet">
                <p>When a lot was bad, a replay makes again all that was made from it, in order. Say what was bad, and see first what would happen.</p>
                <Offered>
                  <ButtonLink to="/replay/new" icon="replay">
                    New replay
                  </ButtonLink>
                </Offered>
              </Empty>
            ) : (
              <Panel title="Replays" aside={`${plural(value.replays.length, "replay")}, newest first`}>
                <Rows of={value.replays} label="replays" columns={REPLAYS} to={(each) => replayPlace(each.id)} />
              </Panel>
            )
          }
        </Shown>
      ) : (
        <Shown of={backfills}>
          {(value) =>
            value.backfills.length === 0 ? (
              <Empty icon="replay" title="No backfill was begun yet">
                <p>A backfill runs an arc on lots that failed or are missing. Find them first:</p>
                <ButtonLink to="/gaps" icon="search">
                  Find gaps
                </ButtonLink>
              </Empty>
            ) : (
              <Panel title="Backfills" aside={`${plural(value.backfills.length, "backfill")}, newest first`}>
                <Rows of={value.backfills} label="backfills" columns={BACKFILLS} to={(each) => backfillPlace(each.id)} />
              </Panel>
            )
          }
        </Shown>
      )}
    </>
  );
}
