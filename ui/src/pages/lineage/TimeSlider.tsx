/** The graph as it was: a slider over the last days; at its right end it is now. */
import { useEffect, useState } from "react";
import { Button } from "../../kit/Button";
import { useNow } from "../../kit/Time";
import { absolute, ago } from "../../kit/words";
import { useQuery } from "../../router/router";
import { DAYS, daysAsked, momentAt, STEPS, stepOf } from "./time";

const WAIT_MS = 200;

/** Where somebody has put the thumb, until it is in the address. */
interface Moved {
  readonly step: number;
  readonly moment: number | null;
}

/** The address says which time is shown; it changes only when somebody moves the thumb. */
export function TimeSlider() {
  const [query, setQuery] = useQuery();
  const asOf = query.get("asOf");
  const days = daysAsked(query.get("days"));
  const [moved, setMoved] = useState<Moved | null>(null);
  const now = useNow();
  useEffect(() => setMoved(null), [asOf, days]);
  useEffect(() => {
    if (moved === null) return;
    const timer = setTimeout(() => {
      setQuery({ asOf: moved.moment === null ? null : new Date(moved.moment).toISOString() });
      setMoved(null);
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [moved, setQuery]);
  const kept = asOf ? Date.parse(asOf) : null;
  const { step, moment } = moved ?? { step: kept === null ? STEPS : stepOf(kept, now, days), moment: kept };
  const said = moment === null ? "now" : Number.isNaN(moment) ? `“${asOf}” is no time` : `${absolute(moment)}, ${ago(moment, now)}`;
  return (
    <div className="time-slider">
      <label htmlFor="as-of">As of</label>
      <input
        id="as-of"
        type="range"
        min={0}
        max={STEPS}
        value={step}
        aria-valuetext={said}
        onChange={(event) => {
          const to = Number(event.target.value);
          setMoved({ step: to, moment: momentAt(to, Date.now(), days) });
        }}
      />
      <span className={moment === null ? "muted" : "toned tone-warn"}>{said}</span>
      <select className="field" aria-label="how far back the slider goes" value={days} onChange={(event) => setQuery({ days: event.target.value })}>
        {DAYS.map((each) => (
          <option key={each} value={each}>
            {each === 1 ? "1 day" : `${each} days`}
          </option>
        ))}
      </select>
      {asOf && (
        <Button kind="quiet" onClick={() => setQuery({ asOf: null })}>
          Back to now
        </Button>
      )}
    </div>
  );
}
