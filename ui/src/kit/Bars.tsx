/** Small charts: bars over time, and one bar of several parts. */
import type { Tone } from "./states";
import { count } from "./format";

export interface Bar {
  readonly label: string;
  readonly parts: readonly { readonly tone: Tone; readonly word: string; readonly value: number }[];
}

const HEIGHT = 96;
const total = (bar: Bar) => bar.parts.reduce((sum, part) => sum + part.value, 0);

/** A bar for each hour; its title has the numbers. */
export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const most = Math.max(0, ...bars.map(total));
  const top = Math.max(1, most);
  const width = 100 / bars.length;
  return (
    <figure className="bars">
      <div className="bars-top faint num">{count(most)}</div>
      <svg viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <line x1="0" x2="100" y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className="axis" />
        {bars.map((bar, at) => {
          let y = HEIGHT - 1;
          return (
            <g key={bar.label}>
              <title>{`${bar.label}: ${bar.parts.map((part) => `${count(part.value)} ${part.word}`).join(", ") || "nothing"}`}</title>
              <rect x={at * width} y={0} width={width} height={HEIGHT} className="hit" />
              {bar.parts.map((part) => {
                const height = (part.value / top) * (HEIGHT - 4);
                y -= height;
                return (
                  <rect
                    key={part.word}
                    x={at * width + width * 0.12}
                    y={y}
                    width={width * 0.76}
                    height={height}
                    className={`tone-${part.tone} filled`}
                  />
                );
              })}
            </g>
          );
        })}
      </svg>
      <figcaption className="faint">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </figcaption>
    </figure>
  );
}

/** One bar that shows the parts of a whole. */
export function Share({ parts, of: whole }: { parts: Bar["parts"]; of?: number }) {
  const sum = whole ?? parts.reduce((all, part) => all + part.value, 0);
  const summary = parts
    .filter((part) => part.value)
    .map((part) => `${count(part.value)} ${part.word}`)
    .join(", ");
  return (
    <span className="share" role="img" aria-label={summary || "nothing"} title={summary}>
      {parts.map(
        (part) =>
          part.value > 0 && (
            <i
              key={part.word}
              className={`tone-${part.tone}`}
              style={{ width: `${(part.value / Math.max(1, sum)) * 100}%` }}
            />
          ),
      )}
    </span>
  );
}
