/** The graph as it was: a slider over the last days; at its right end it is now. */
import { useEffect, useState } from "react";
import { Button } from "../../kit/Button";
import { absolute, ago } from "../../kit/words";
import { useQuery } from "../../router/router";

const STEPS = 400;
const DAYS = [1, 7, 30, 90];
const DAY_MS = 86_400_000;
const WAIT_MS = 200;

export function TimeSlider() {
  const [query, setQuery] = useQuery();
  const asOf = query.get("asOf");
  const days = Number(query.get("days")) || 7;
  const now = Date.now();
  const at = asOf ? Date.parse(asOf) : now;
  const kept = Math.max(0, Math.min(STEPS, Math.round(STEPS - ((now - at) / (days * DAY_MS)) * STEPS)));
  const [step, setStep] = useState(kept);
  useEffect(() => setStep(kept), [asOf, days]);
  useEffect(() => {
    if (step === kept) return;
    const timer = setTimeout(() => {
      const moment = Date.now() - ((STEPS - step) / STEPS) * days * DAY_MS;
      setQuery({ asOf: step === STEPS ? null : new Date(moment).toISOString() });
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [step, kept, days, setQuery]);
  const shown = now - ((STEPS - step) / STEPS) * days * DAY_MS;
  const said = step === STEPS ? "now" : `${absolute(shown)}, ${ago(shown, now)}`;
  return (
    <div className="time-slider">
      <label htmlFor="as-of">As of</label>
      <input id="as-of" type="range" min={0} max={STEPS} value={step} aria-valuetext={said} onChange={(event) => setStep(Number(event.target.value))} />
      <span className={step === STEPS ? "muted" : "toned tone-warn"}>{said}</span>
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
