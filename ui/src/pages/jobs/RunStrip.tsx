import { lookOf } from "../../kit/states";
import { span } from "../../kit/format";
import type { Schemas } from "../../api/client";

/** The last runs of a job as a row of bars: the color is the state, the height the duration. */
export function RunStrip({ runs }: { runs: readonly Schemas["Run"][] }) {
  const recent = [...runs].slice(0, 12).reverse();
  const longest = Math.max(1, ...recent.map((run) => run.durationMs ?? 0));
  const states = recent.map((run) => run.state.toLowerCase()).join(", ");
  return (
    <span className="strip" role="img" aria-label={states ? `last runs: ${states}` : "no run yet"}>
      {recent.map((run) => {
        const look = lookOf(run.state);
        const part = 0.35 + 0.65 * ((run.durationMs ?? longest) / longest);
        return (
          <i
            key={run.id}
            className={`tone-${look.tone} ${look.tone}`}
            style={{ height: `${part * 18}px` }}
            title={`${look.word}${run.durationMs === null ? "" : `, ${span(run.durationMs / 1000)}`}`}
          />
        );
      })}
    </span>
  );
}
