/** The backfills of an arc: a form with a preview, and the list of them. */
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { StartBackfillButton, BackfillPlan, useBackfill } from "../../actions/backfill";
import { useGet } from "../../api/queries";
import { Button } from "../../kit/Button";
import { IfAllowed } from "../../kit/IfAllowed";
import { Panel } from "../../kit/Panel";
import { Async, ProblemNote } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { Rows } from "../../kit/Table";
import { Time } from "../../kit/Time";
import { count } from "../../kit/format";
import { Link } from "../../router/Link";
import { BackfillShare, backfillAddress, lotsOf, BackfillActions } from "../replay/progress";

export function BackfillTab({ job }: { job: Schemas["Job"] }) {
  const { body, change, plan, problem, preview, start } = useBackfill(job.id, {
    all: false,
    newestFirst: false,
    maxRunning: 4,
  });
  const [lots, setLots] = useState("");
  function setList(text: string): void {
    setLots(text);
    change({
      lots: text
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean),
    });
  }
  return (
    <>
      <Panel title="New backfill">
        <IfAllowed hasNote>
          <form className="body stack" onSubmit={(event) => void preview(event)}>
            <div className="backfill-form">
              <label>
                From
                <input
                  className="field mono"
                  placeholder="first lot"
                  value={body.from ?? ""}
                  onChange={(event) => change({ from: event.target.value || null })}
                />
              </label>
              <label>
                To
                <input
                  className="field mono"
                  placeholder="last lot"
                  value={body.to ?? ""}
                  onChange={(event) => change({ to: event.target.value || null })}
                />
              </label>
              <label>
                Or a list of lots, one per line
                <textarea
                  className="field mono"
                  rows={2}
                  placeholder="lot ids"
                  value={lots}
                  onChange={(event) => setList(event.target.value)}
                />
              </label>
              <label>
                At once
                <input
                  className="field"
                  type="number"
                  min={1}
                  max={1000}
                  value={body.maxRunning ?? 4}
                  onChange={(event) => change({ maxRunning: Number(event.target.value) || 1 })}
                />
              </label>
              <label className="check">
                <input
                  type="checkbox"
                  checked={body.all ?? false}
                  onChange={(event) => change({ all: event.target.checked })}
                />{" "}
                include good lots
              </label>
              <label className="check">
                <input
                  type="checkbox"
                  checked={body.newestFirst ?? false}
                  onChange={(event) => change({ newestFirst: event.target.checked })}
                />{" "}
                newest first
              </label>
              <Button type="submit" kind="primary" icon="search">
                Preview
              </Button>
            </div>
            <p className="faint">
              A backfill runs the arc on lots that are not good. A range has two lots or times, such
              as 20261115PT1H09 or 2026-11-15. Lots with free ids have no range: list them, or leave
              all fields empty for the failed and missing ones. The preview changes nothing.
            </p>
          </form>
          {problem && <ProblemNote problem={problem} />}
        </IfAllowed>
      </Panel>
      {plan && (
        <Panel title="Plan" aside={<StartBackfillButton plan={plan} start={start} />}>
          <BackfillPlan plan={plan} arc={job.id} />
        </Panel>
      )}
      <Backfills job={job} />
    </>
  );
}

function Backfills({ job }: { job: Schemas["Job"] }) {
  const result = useGet("/api/v1/backfills", { query: { limit: 100 } });
  return (
    <Async of={result}>
      {(value) => {
        const own = value.backfills.filter(
          (each) => each.namespace === job.namespace && each.arc === job.name,
        );
        return own.length === 0 ? null : (
          <Panel title="Backfills" aside="newest first">
            <Rows
              of={own}
              label="backfills"
              rows={8}
              columns={[
                { title: "state", cell: (each) => <Status of={each.state} />, width: "110px" },
                {
                  title: "lots",
                  cell: (each) => (
                    <Link className="name mono" to={backfillAddress(each.id)}>
                      {lotsOf(each)}
                    </Link>
                  ),
                  width: "minmax(10rem, 1.4fr)",
                },
                {
                  title: "progress",
                  cell: (each) => <BackfillShare of={each} />,
                  width: "minmax(7rem, 1fr)",
                  wide: true,
                },
                {
                  title: "done",
                  cell: (each) => `${count(each.done + each.good)} of ${count(each.count)}`,
                  width: "100px",
                  end: true,
                },
                { title: "by", cell: (each) => each.who, width: "90px", wide: true },
                {
                  title: "started",
                  cell: (each) => <Time at={each.createdAt} />,
                  width: "90px",
                  wide: true,
                },
                {
                  title: "",
                  isAction: true,
                  cell: (each) => <BackfillActions backfill={each} />,
                  width: "190px",
                  end: true,
                  wide: true,
                },
              ]}
            />
          </Panel>
        );
      }}
    </Async>
  );
}
