/** What one job does with one lot: how it stands and why, its parts, its attempts, its history. */
import { heldLotOf } from "../../actions/work";
import { call, type Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { Act } from "../../kit/Act";
import { Icon } from "../../kit/Icon";
import { JobName, LotName, RunName } from "../../kit/Names";
import { Facts, PageHead, Panel } from "../../kit/Panel";
import { Shown } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { plural, size } from "../../kit/words";
import { spanOf } from "../../lots/intervals";
import { LogTable } from "../datasets/Lot";
import "./jobs.css";
import { WorkAction } from "./JobLots";
import { WhyPanel } from "./Why";

export default function Work({ namespace = "", name = "", lot = "" }: { namespace?: string; name?: string; lot?: string }) {
  const path = { namespace, job: name, lot };
  const found = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}", { path });
  const why = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}/why", found.value?.state === "HELD" ? { path } : null).value;
  const standing = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/standing", { path: { namespace, job: name } }).value;
  const log = useGet("/api/v1/namespaces/{namespace}/jobs/{job}/log", { path: { namespace, job: name }, query: { lot, limit: 200 } }).value?.entries ?? [];
  return (
    <Shown of={found}>
      {(work) => (
        <>
          <PageHead
            kind={
              <>
                <Icon name="gear" size={14} /> <JobName of={{ namespace, name }} /> works on
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
            <Panel title="How it stands">
              <div className="body">
                <Facts
                  of={[
                    ["Since", <Time at={work.since} full />],
                    ["Tries", `${work.attempts} of ${work.attemptsMax}`],
                    ["Worker", work.owner ?? "nobody"],
                    ["Run", work.claim && <RunName of={work.claim} />],
                    ["Lease until", work.leaseUntil && <Time at={work.leaseUntil} full />],
                    ["Tried again", work.notBefore && <Time at={work.notBefore} full />],
                    ["Priority", work.priority],
                    ["Fencing token", work.token],
                    ["Reads", standing?.wiring?.inputs.map((id) => <div key={id.name}>{id.name} <LotName dataset={id} lot={lot} /></div>)],
                    ["Writes", standing?.wiring?.outputs.map((id) => <div key={id.name}>{id.name} <LotName dataset={id} lot={lot} /></div>)],
                  ]}
                />
                {work.error && <p className="toned tone-bad">{work.error}</p>}
              </div>
            </Panel>
            {standing?.isArc && <OfArc path={{ namespace, arc: name, lot }} />}
            <LogTable entries={log} />
          </div>
        </>
      )}
    </Shown>
  );
}

function OfArc({ path }: { path: { namespace: string; arc: string; lot: string } }) {
  const detail = useGet("/api/v1/namespaces/{namespace}/arcs/{arc}/lots/{lot}", { path });
  return (
    <Shown of={detail}>
      {(value) => (
        <>
          {value.parts.length > 0 && <Parts parts={value.parts} />}
          {value.failedAttempts.length > 0 && (
            <Panel
              title="Failed attempts"
              aside={
                <Act
                  icon="cross"
                  kind="danger"
                  ask={{ title: `Remove what failed attempts on ${path.lot} left?`, says: "Their objects are deleted, parts that were good included: the next try begins anew. This cannot be undone.", verb: "Remove the leftovers", danger: true, reason: "needed" }}
                  run={(why) => call("post", "/api/v1/namespaces/{namespace}/arcs/{arc}/lots/{lot}/clean", { path, body: { why } })}
                  done="What failed attempts left is removed."
                >
                  Remove leftovers
                </Act>
              }
            >
              <Rows
                of={value.failedAttempts}
                label="failed attempts"
                rows={8}
                columns={[
                  { title: "run", cell: (each) => <RunName of={each.run} />, width: "130px" },
                  { title: "state", cell: (each) => <Status of={each.state} />, width: "110px" },
                  { title: "left behind", cell: (each) => plural(each.keys.length, "object") },
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
                  { title: "dataset", cell: (each) => <LotName dataset={{ namespace: each.namespace, name: each.dataset }} lot={path.lot} />, width: "minmax(8rem, 1fr)" },
                  { title: "state", cell: (each) => <Status of={each.state} label={each.isCurrent ? `${each.state}, current` : each.state} />, width: "150px" },
                  { title: "objects", cell: (each) => each.uris, width: "80px", end: true },
                  { title: "size", cell: (each) => size(each.bytes), width: "80px", end: true },
                  { title: "when", cell: (each) => <Time at={each.at} />, width: "100px" },
                ]}
              />
            </Panel>
          )}
        </>
      )}
    </Shown>
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
          { title: "part", cell: (part) => <span className="mono">{part.part}</span>, width: "minmax(8rem, 1fr)" },
          { title: "state", cell: (part) => <Status of={part.state} />, width: "110px" },
          { title: "run", cell: (part) => part.run && <RunName of={part.run} />, width: "130px" },
          { title: "objects", cell: (part) => part.uris, width: "80px", end: true },
          { title: "size", cell: (part) => size(part.bytes), width: "80px", end: true },
          { title: "error", cell: (part) => part.error, wide: true },
        ]}
      />
    </Panel>
  );
}
