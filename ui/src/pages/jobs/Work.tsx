/** The work of a job on a lot: its state and reasons, its parts, its attempts, its history. */
import { heldLotOf, WorkAction } from "../../actions/work";
import { call, type Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ActionButton } from "../../kit/ActionButton";
import { Icon } from "../../kit/Icon";
import { JobLink, LotLink, RunLink } from "../../kit/links";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural, size } from "../../kit/format";
import { spanOf } from "../../lots/intervals";
import { LogTable } from "../datasets/Lot";
import "./jobs.css";
import { WhyPanel } from "./Why";

export default function Work({
  namespace = "",
  name = "",
  lot = "",
}: {
  namespace?: string;
  name?: string;
  lot?: string;
}) {
  const path = { namespace, job: name, lot };
  const result = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}", { path });
  const why = useGet(
    "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why",
    result.data?.state === "HELD" ? { path } : null,
  ).data;
  const standing = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/standing", {
    path: { namespace, job: name },
  }).data;
  const log =
    useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", {
      path: { namespace, job: name },
      query: { lot, limit: 200 },
    }).data?.entries ?? [];
  return (
    <Async of={result}>
      {(work) => (
        <>
          <PageHead
            kind={
              <>
                <Icon name="gear" size={14} /> <JobLink of={{ namespace, name }} /> works on
              </>
            }
            title={<span className="mono">{lot}</span>}
            copies={lot}
            actions={<WorkAction work={work} heldLotOf={why ? heldLotOf(why) : null} />}
          >
            <Status of={work.state} />
            <span>{spanOf(lot)}</span>
          </PageHead>
          <div className="stack">
            {work.state !== "DONE" && <WhyPanel namespace={namespace} job={name} lot={lot} />}
            <Panel title="State">
              <div className="body">
                <Facts
                  of={[
                    ["Since", <Time at={work.since} full />],
                    ["Tries", `${work.attempts} of ${work.attemptsMax}`],
                    ["Worker", work.owner ?? "none"],
                    ["Run", work.claim && <RunLink of={work.claim} />],
                    ["Lease until", work.leaseUntil && <Time at={work.leaseUntil} full />],
                    ["Next try", work.notBefore && <Time at={work.notBefore} full />],
                    ["Priority", work.priority],
                    ["Fencing token", work.token],
                    [
                      "Reads",
                      standing?.wiring?.inputs.map((id) => (
                        <div key={id.name}>
                          {id.name} <LotLink dataset={id} lot={lot} />
                        </div>
                      )),
                    ],
                    [
                      "Writes",
                      standing?.wiring?.outputs.map((id) => (
                        <div key={id.name}>
                          {id.name} <LotLink dataset={id} lot={lot} />
                        </div>
                      )),
                    ],
                  ]}
                />
                {work.error && <p className="toned tone-bad">{work.error}</p>}
              </div>
            </Panel>
            {standing?.isArc && <ArcWork path={{ namespace, arc: name, lot }} />}
            <LogTable entries={log} />
          </div>
        </>
      )}
    </Async>
  );
}

function ArcWork({ path }: { path: { namespace: string; arc: string; lot: string } }) {
  const detail = useGet("/api/v1/namespaces/{namespace}/arcs/{arc}/lots/{lot}", { path });
  return (
    <Async of={detail}>
      {(value) => (
        <>
          {value.parts.length > 0 && <Parts parts={value.parts} />}
          {value.failedAttempts.length > 0 && (
            <Panel title="Failed attempts" aside={<CleanButton path={path} />}>
              <Rows
                of={value.failedAttempts}
                label="failed attempts"
                rows={8}
                columns={[
                  { title: "run", cell: (each) => <RunLink of={each.run} />, width: "130px" },
                  { title: "state", cell: (each) => <Status of={each.state} />, width: "110px" },
                  { title: "leftovers", cell: (each) => plural(each.keys.length, "object") },
                  { title: "when", cell: (each) => <Time at={each.at} />, width: "100px" },
                ]}
              />
            </Panel>
          )}
          {value.manifests.length > 0 && (
            <Panel title="Manifests" aside="newest first">
              <Rows
                of={value.manifests}
                label="manifests"
                rows={8}
                columns={[
                  {
                    title: "dataset",
                    cell: (each) => (
                      <LotLink
                        dataset={{ namespace: each.namespace, name: each.dataset }}
                        lot={path.lot}
                      />
                    ),
                    width: "minmax(8rem, 1fr)",
                  },
                  {
                    title: "state",
                    cell: (each) => (
                      <Status
                        of={each.state}
                        label={each.isCurrent ? `${each.state}, current` : each.state}
                      />
                    ),
                    width: "150px",
                  },
                  { title: "objects", cell: (each) => each.uris, width: "80px", end: true },
                  { title: "size", cell: (each) => size(each.bytes), width: "80px", end: true },
                  { title: "when", cell: (each) => <Time at={each.at} />, width: "100px" },
                ]}
              />
            </Panel>
          )}
        </>
      )}
    </Async>
  );
}

/** Remove the objects that failed attempts left behind. */
function CleanButton({ path }: { path: { namespace: string; arc: string; lot: string } }) {
  return (
    <ActionButton
      icon="cross"
      kind="danger"
      title={`Remove the leftovers of failed attempts on ${path.lot}?`}
      description="Their objects are deleted, good parts included: the next try starts from nothing. This cannot be undone."
      verb="Remove leftovers"
      danger
      send={(why) =>
        call("post", "/api/v1/namespaces/{namespace}/arcs/{arc}/lots/{lot}/clean", {
          path,
          body: { why },
        })
      }
      done="The leftovers are removed."
    >
      Remove leftovers
    </ActionButton>
  );
}

function Parts({ parts }: { parts: readonly Schemas["ArcPart"][] }) {
  return (
    <Panel title="Parts" aside={plural(parts.length, "part")}>
      <Rows
        of={parts}
        label="parts"
        rows={12}
        columns={[
          {
            title: "part",
            cell: (part) => <span className="mono">{part.part}</span>,
            width: "minmax(8rem, 1fr)",
          },
          { title: "state", cell: (part) => <Status of={part.state} />, width: "110px" },
          { title: "run", cell: (part) => part.run && <RunLink of={part.run} />, width: "130px" },
          { title: "objects", cell: (part) => part.uris, width: "80px", end: true },
          { title: "size", cell: (part) => size(part.bytes), width: "80px", end: true },
          { title: "error", cell: (part) => part.error, wide: true },
        ]}
      />
    </Panel>
  );
}
