/** A slider over the last days for the graph at a former time; its right end is now. */
import { useEffect, useState } from "react";
import { Button } from "../../kit/Button";
import { useNow } from "../../kit/Time";
import { utcTime, ago } from "../../kit/format";
import { useSearchParams } from "../../router/router";
import { DAYS, daysAsked, momentAt, STEPS, stepOf } from "./time";

const WAIT_MS = 200;

/** The position of the thumb until it is in the address. */
interface Moved {
  readonly step: number;
  readonly moment: number | null;
}

/** The time is in the address, and changes only when the user moves the thumb. */
export function TimeSlider() {
  const [query, setQuery] = useSearchParams();
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
  const saved = asOf ? Date.parse(asOf) : null;
  const { step, moment } = moved ?? {
    step: saved === null ? STEPS : stepOf(saved, now, days),
    moment: saved,
  };
  const timeText =
    moment === null
      ? "now"
      : Number.isNaN(moment)
        ? `“${asOf}” is not a time`
        : `${utcTime(moment)}, ${ago(moment, now)}`;
  return (
    <div className="time-slider">
      <label htmlFor="as-of">As of</label>
      <input
        id="as-of"
        type="range"
        min={0}
        max={STEPS}
        value={step}
        aria-valuetext={timeText}
        onChange={(event) => {
          const to = Number(event.target.value);
          setMoved({ step: to, moment: momentAt(to, Date.now(), days) });
        }}
      />
      <span className={moment === null ? "muted" : "toned tone-warn"}>{timeText}</span>
      <select
        className="field"
        aria-label="how far back the slider goes"
        value={days}
        onChange={(event) => setQuery({ days: event.target.value })}
      >
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
