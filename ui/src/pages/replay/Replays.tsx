/** The replays and backfills, newest first. */
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { JobLink } from "../../kit/links";
import { IfAllowed } from "../../kit/IfAllowed";
import { PageHead, Panel, Tabs } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count, plural } from "../../kit/format";
import { Link } from "../../router/Link";
import { useSearchParams } from "../../router/router";
import {
  type Backfill,
  BackfillShare,
  backfillAddress,
  lotsOf,
  type Replay,
  replayAddress,
  ReplayShare,
  BackfillActions,
  ReplayActions,
} from "./progress";

const REPLAYS: Column<Replay>[] = [
  { title: "state", cell: (each) => <Status of={each.state} />, width: "104px" },
  {
    title: "bad data",
    cell: (each) => (
      <Link className="name" to={replayAddress(each.id)} title={each.target}>
        {each.target}
      </Link>
    ),
    width: "minmax(9rem, 1.6fr)",
  },
  {
    title: "progress",
    cell: (each) => <ReplayShare of={each} />,
    width: "minmax(5rem, 0.8fr)",
    wide: true,
  },
  {
    title: "done",
    cell: (each) => `${count(each.done)} of ${count(each.steps)}`,
    width: "86px",
    end: true,
  },
  { title: "by", cell: (each) => each.who, width: "80px", wide: true },
  {
    title: "why",
    cell: (each) => <span title={each.why}>{each.why}</span>,
    width: "minmax(6rem, 1fr)",
    wide: true,
  },
  { title: "started", cell: (each) => <Time at={each.createdAt} />, width: "84px", wide: true },
  {
    title: "",
    isAction: true,
    cell: (each) => <ReplayActions replay={each} />,
    width: "190px",
    end: true,
    wide: true,
  },
];

const BACKFILLS: Column<Backfill>[] = [
  { title: "state", cell: (each) => <Status of={each.state} />, width: "104px" },
  {
    title: "lots",
    cell: (each) => (
      <Link className="name mono" to={backfillAddress(each.id)}>
        {lotsOf(each)}
      </Link>
    ),
    width: "minmax(9rem, 1.4fr)",
  },
  {
    title: "arc",
    cell: (each) => <JobLink of={{ namespace: each.namespace, name: each.arc }} />,
    width: "minmax(6rem, 0.8fr)",
    wide: true,
  },
  {
    title: "progress",
    cell: (each) => <BackfillShare of={each} />,
    width: "minmax(5rem, 0.8fr)",
    wide: true,
  },
  {
    title: "done",
    cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`,
    width: "86px",
    end: true,
  },
  { title: "by", cell: (each) => each.who, width: "80px", wide: true },
  { title: "started", cell: (each) => <Time at={each.createdAt} />, width: "84px", wide: true },
  {
    title: "",
    isAction: true,
    cell: (each) => <BackfillActions backfill={each} />,
    width: "190px",
    end: true,
    wide: true,
  },
];

export default function Replays() {
  const [query] = useSearchParams();
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
            <IfAllowed>
              <ButtonLink to="/replay/new" icon="replay" kind="primary">
                New replay
              </ButtonLink>
            </IfAllowed>
          </>
        }
      />
      <Tabs
        tabs={[
          { id: "replays", label: "Replays", count: replays.data?.replays.length },
          { id: "backfills", label: "Backfills", count: backfills.data?.backfills.length },
        ]}
      />
      {tab === "replays" ? (
        <Async of={replays}>
          {(value) =>
            value.replays.length === 0 ? (
              <EmptyState icon="replay" title="No replay yet">
                <p>
                  A replay makes everything that was made from a bad lot again, in order. It starts
                  with a preview.
                </p>
                <IfAllowed>
                  <ButtonLink to="/replay/new" icon="replay">
                    New replay
                  </ButtonLink>
                </IfAllowed>
              </EmptyState>
            ) : (
              <Panel
                title="Replays"
                aside={`${plural(value.replays.length, "replay")}, newest first`}
              >
                <Rows
                  of={value.replays}
                  label="replays"
                  columns={REPLAYS}
                  to={(each) => replayAddress(each.id)}
                />
              </Panel>
            )
          }
        </Async>
      ) : (
        <Async of={backfills}>
          {(value) =>
            value.backfills.length === 0 ? (
              <EmptyState icon="replay" title="No backfill yet">
                <p>A backfill runs an arc on failed and missing lots. Find them first:</p>
                <ButtonLink to="/gaps" icon="search">
                  Find gaps
                </ButtonLink>
              </EmptyState>
            ) : (
              <Panel
                title="Backfills"
                aside={`${plural(value.backfills.length, "backfill")}, newest first`}
              >
                <Rows
                  of={value.backfills}
                  label="backfills"
                  columns={BACKFILLS}
                  to={(each) => backfillAddress(each.id)}
                />
              </Panel>
            )
          }
        </Async>
      )}
    </>
  );
}
