/** Backfills of an arc: say what, see what would happen, begin, watch, pause and cancel. */
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { BeginBackfill, Planned, useBackfill } from "../../actions/backfill";
import { useGet } from "../../api/hooks";
import { Button } from "../../kit/Button";
import { Offered } from "../../kit/Offered";
import { Panel } from "../../kit/Panel";
import { Shown, Trouble } from "../../kit/Shown";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count } from "../../kit/words";
import { Link } from "../../router/Link";
import { BackfillShare, backfillPlace, lotsOf, SteerBackfill } from "../replay/progress";

export function Backfill({ job }: { job: Schemas["Job"] }) {
  const { body, change, plan, problem, preview, begin } = useBackfill(job.id, { all: false, newestFirst: false, maxRunning: 4 });
  const [lots, setLots] = useState("");
  function name(text: string): void {
    setLots(text);
    change({ lots: text.split("\n").map((line) => line.trim()).filter(Boolean) });
  }
  return (
    <>
      <Panel title="A backfill runs an arc on lots that are not good">
        <Offered says>
          <form className="body stack" onSubmit={(event) => void preview(event)}>
            <div className="backfill-form">
              <label>
                From
                <input className="field mono" placeholder="the first lot" value={body.from ?? ""} onChange={(event) => change({ from: event.target.value || null })} />
              </label>
              <label>
                To
                <input className="field mono" placeholder="the last lot" value={body.to ?? ""} onChange={(event) => change({ to: event.target.value || null })} />
              </label>
              <label>
                Or these lots, one in each line
                <textarea className="field mono" rows={2} placeholder="the names of lots" value={lots} onChange={(event) => name(event.target.value)} />
              </label>
              <label>
                At once
                <input className="field" type="number" min={1} max={1000} value={body.maxRunning ?? 4} onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })} />
              </label>
              <label className="check">
                <input type="checkbox" checked={body.all ?? false} onChange={(event) => change({ all: event.target.checked })} /> also what is good
              </label>
              <label className="check">
                <input type="checkbox" checked={body.newestFirst ?? false} onChange={(event) => change({ newestFirst: event.target.checked })} /> newest first
              </label>
              <Button type="submit" kind="primary" icon="search">
                Preview
              </Button>
            </div>
            <p className="faint">A range is from one lot or time to another, such as 20261115PT1H09 or 2026-11-15. Lots with free ids have no range: name them, or leave all empty for those that failed or are missing. The preview changes nothing.</p>
          </form>
          {problem && <Trouble problem={problem} />}
        </Offered>
      </Panel>
      {plan && (
        <Panel title="What would happen" aside={<BeginBackfill plan={plan} begin={begin} />}>
          <Planned plan={plan} arc={job.id} />
        </Panel>
      )}
      <Backfills job={job} />
    </>
  );
}

function Backfills({ job }: { job: Schemas["Job"] }) {
  const found = useGet("/api/v1/backfills", { query: { limit: 100 } });
  return (
    <Shown of={found}>
      {(value) => {
        const own = value.backfills.filter((each) => each.namespace === job.namespace && each.arc === job.name);
        return own.length === 0 ? null : (
          <Panel title="Backfills" aside="newest first">
            <Rows
              of={own}
              label="backfills"
              rows={8}
              columns={[
                { title: "state", cell: (each) => <Status of={each.state} />, width: "110px" },
                { title: "lots", cell: (each) => <Link className="name mono" to={backfillPlace(each.id)}>{lotsOf(each)}</Link>, width: "minmax(10rem, 1.4fr)" },
                { title: "how far", cell: (each) => <BackfillShare of={each} />, width: "minmax(7rem, 1fr)", wide: true },
                { title: "done", cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`, width: "100px", end: true },
                { title: "by", cell: (each) => each.who, width: "90px", wide: true },
                { title: "began", cell: (each) => <Time at={each.createdAt} />, width: "90px", wide: true },
                { title: "", acts: true, cell: (each) => <SteerBackfill backfill={each} />, width: "190px", end: true, wide: true },
              ]}
            />
          </Panel>
        );
      }}
    </Shown>
  );
}
