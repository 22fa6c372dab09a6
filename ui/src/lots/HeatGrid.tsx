/** All lots of a dataset at once, drawn on a canvas from the ranges that the server tells. */
import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { onTheme } from "../app/theme";
import { StatusIcon } from "../kit/Status";
import { lookOf } from "../kit/status";
import { count } from "../kit/words";
import { cellOf, type Grid, gridOf, hoursAbove, kindsOf, lotOfKind, lotOfPlace, placeOf, type Range, stepFrom, UNTOLD } from "./grid";
import { type Interval, lengthOf, spanOf, startOf } from "./intervals";
import "./grid.css";

/** The order in which the legend names them; `there` is what no range names. */
const KINDS = ["missing", "waiting", "running", "partial", "held", "empty", "removed", UNTOLD];
const LABEL = 78;
/** How wide the name of an hour is, with what keeps it from the next. */
const HOUR_ROOM = 44;
const ODD = 2;
const VIEW = 420;
/** A key that is held down passes many lots; only the one where it rests is asked for. */
const REST_MS = 120;

interface Props {
  interval: Interval;
  first: string;
  count: number;
  ranges: readonly Range[];
  totals: Readonly<Record<string, number>>;
  there: number;
  /** Whether the server told only the first ranges: what comes after them is drawn as not told. */
  isCut: boolean;
  chosen: string | null;
  onChoose: (lot: string) => void;
}

export function HeatGrid({ interval, first, count: lots, ranges, totals, there, isCut, chosen: kept, onChoose }: Props) {
  const grid = useMemo(() => gridOf(interval, first, lots), [interval, first, lots]);
  const kinds = useMemo(() => kindsOf(grid, ranges, KINDS, isCut), [grid, ranges, isCut]);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const [hover, setHover] = useState<{ lot: string; x: number; y: number } | null>(null);
  const [theme, setTheme] = useState(0);
  const [passed, setPassed] = useState<string | null>(null);
  const chosen = passed ?? kept;
  useEffect(() => {
    if (passed === null) return;
    const timer = setTimeout(() => {
      onChoose(passed);
      setPassed(null);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [passed, onChoose]);
  useEffect(() => onTheme(() => setTheme((before) => before + 1)), []);
  useLayoutEffect(() => {
    const view = box.current;
    if (!view) return;
    const watcher = new ResizeObserver(() => setWidth(view.clientWidth));
    watcher.observe(view);
    return () => watcher.disconnect();
  }, []);
  const cell = cellOf(width - LABEL - 8, grid.columns);
  const rowHeight = cell >= 12 ? 20 : cell >= 6 ? 14 : 9;
  const height = grid.rows * rowHeight;
  const seen = Math.min(VIEW, height);

  // The newest lots are the ones that are looked for; who has gone back to older ones stays there.
  const isAtEnd = useRef(true);
  const isDrawn = width > 0;
  useLayoutEffect(() => {
    if (box.current && isDrawn && isAtEnd.current) box.current.scrollTop = height;
  }, [height, isDrawn]);
  useLayoutEffect(() => {
    const view = box.current;
    const at = chosen === null ? null : startOf(chosen);
    if (!view || !isDrawn || at === null) return;
    const y = placeOf(grid, at)[0] * rowHeight;
    const beyond = y < view.scrollTop ? view.scrollTop - y : y + rowHeight - view.scrollTop - seen;
    // A step scrolls as far as it must; what is far away comes into the middle.
    if (beyond > seen / 2) view.scrollTop = y - seen / 2;
    else if (beyond > 0) view.scrollTop += y < view.scrollTop ? -beyond : beyond;
  }, [chosen, isDrawn, rowHeight]);

  useEffect(() => {
    if (canvas.current && width) draw(canvas.current, { grid, kinds, cell, rowHeight, top, width: LABEL + cell * grid.columns, height: seen, chosen });
  }, [grid, kinds, cell, rowHeight, top, width, seen, chosen, theme]);

  function lotUnder(event: MouseEvent): string | null {
    const view = canvas.current?.getBoundingClientRect();
    if (!view) return null;
    const column = Math.floor((event.clientX - view.left - LABEL) / cell);
    return lotOfPlace(grid, Math.floor((event.clientY - view.top + top) / rowHeight), column);
  }
  function point(event: MouseEvent): void {
    const lot = lotUnder(event);
    const view = box.current?.getBoundingClientRect();
    setHover(lot && view ? { lot, x: event.clientX - view.left, y: event.clientY - view.top } : null);
  }
  function steer(event: KeyboardEvent): void {
    const lot = stepFrom(grid, chosen, event.key);
    if (lot === null) return;
    event.preventDefault();
    if (event.repeat) setPassed(lot);
    else onChoose(lot);
  }
  const kindOf = (lot: string) => KINDS[(kinds[Math.round(((startOf(lot) ?? 0) - grid.start) / lengthOf(interval))] ?? 0) - 1] ?? "there";
  const said = [`${count(there)} there`, ...KINDS.filter((kind) => totals[kind]).map((kind) => `${count(totals[kind] ?? 0)} ${kind}`)].join(", ");
  return (
    <div className="heat">
      <Legend
        totals={totals}
        there={there}
        onKind={(kind) => {
          const lot = lotOfKind(grid, kinds, KINDS.indexOf(kind) + 1, chosen);
          if (lot) onChoose(lot);
        }}
      />
      {isCut && (
        <p className="heat-cut toned tone-warn" role="note">
          Only the first {count(ranges.length)} ranges that are not simply there were told: what comes after {ranges.at(-1)?.last} is drawn as {UNTOLD}. Numbers are of all lots.
        </p>
      )}
      <Axis grid={grid} cell={cell} />
      <div className="heat-view" ref={box} style={{ height: seen }} onScroll={({ currentTarget: view }) => {
          setTop(view.scrollTop);
          isAtEnd.current = view.scrollTop + view.clientHeight >= view.scrollHeight - 1;
        }}>
        <div style={{ height }}>
          <canvas
            ref={canvas}
            tabIndex={0}
            role="img"
            aria-label={`${count(lots)} lots: ${said}. ${chosen ? `Chosen: ${chosen}, ${kindOf(chosen)}.` : ""} Arrow keys choose a lot.`}
            onClick={(event) => {
              const lot = lotUnder(event);
              if (lot) onChoose(lot);
            }}
            onMouseMove={point}
            onMouseLeave={() => setHover(null)}
            onKeyDown={steer}
          />
        </div>
      </div>
      {hover && (
        <div className="heat-tip" style={{ left: Math.min(hover.x + 14, Math.max(0, width - 230)), top: hover.y + 46 }}>
          <strong className="mono">{hover.lot}</strong>
          <span>{spanOf(hover.lot)}</span>
          <span className={`toned tone-${lookOf(kindOf(hover.lot)).tone}`}>
            <StatusIcon of={kindOf(hover.lot)} /> {kindOf(hover.lot)}
          </span>
        </div>
      )}
    </div>
  );
}

/** What each colour means and how many there are; what is odd is a step away, however many lots lie between. */
function Legend({ totals, there, onKind }: { totals: Readonly<Record<string, number>>; there: number; onKind: (kind: string) => void }) {
  const shown = [["there", there] as const, ...KINDS.map((kind) => [kind, totals[kind] ?? 0] as const)].filter(([, number]) => number);
  return (
    <ul className="legend">
      {shown.map(([kind, number]) => (
        <li key={kind} className={`tone-${lookOf(kind).tone}`}>
          <i />
          <StatusIcon of={kind} />{" "}
          {kind === "there" || kind === UNTOLD ? (
            kind
          ) : (
            <button type="button" className="link" title={`Show the newest ${kind} lots; again, those before them`} onClick={() => onKind(kind)}>
              {kind}
            </button>
          )}{" "}
          <span className="num faint">{count(number)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Hours of the day, or days of the month, above the columns. */
function Axis({ grid, cell }: { grid: Grid; cell: number }) {
  const isByMonth = grid.interval === "PT24H";
  const marks = isByMonth ? [1, 5, 10, 15, 20, 25, 30] : hoursAbove(grid.columns, cell, HOUR_ROOM);
  const columnOf = (mark: number) => (isByMonth ? mark - 1 : (mark * grid.columns) / 24);
  return (
    <div className="heat-axis" aria-hidden="true">
      {marks.map((mark) => (
        <span key={mark} style={{ left: LABEL + columnOf(mark) * cell }}>
          {isByMonth ? mark : `${String(mark).padStart(2, "0")}:00`}
        </span>
      ))}
    </div>
  );
}

interface Drawing {
  grid: Grid;
  kinds: Uint8Array;
  cell: number;
  rowHeight: number;
  top: number;
  width: number;
  height: number;
  chosen: string | null;
}

/** Draws the rows in sight; the canvas is as large as the view, however many lots there are. */
function draw(canvas: HTMLCanvasElement, { grid, kinds, cell, rowHeight, top, width, height, chosen }: Drawing): void {
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const brush = canvas.getContext("2d");
  if (!brush) return;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const fills = ["there", ...KINDS].map((kind) => colour(`--${lookOf(kind).tone}-fill`));
  brush.scale(scale, scale);
  brush.clearRect(0, 0, width, height);
  brush.font = `11px ${colour("--mono")}`;
  brush.textBaseline = "middle";
  const length = lengthOf(grid.interval);
  const gap = cell >= 5 ? 1 : 0;
  const seam = cell < 2 ? 0.5 : 0;
  // Edges between pixels would blur; below two pixels nothing else fits.
  const edge = (column: number) => LABEL + (cell < 2 ? column * cell : Math.round(column * cell));
  const from = Math.max(0, Math.floor(top / rowHeight));
  const to = Math.min(grid.rows, Math.ceil((top + height) / rowHeight));
  const every = Math.ceil(14 / rowHeight);
  for (let row = from; row < to; row += 1) {
    const y = row * rowHeight - top;
    if (row % every === 0) {
      brush.fillStyle = colour("--muted");
      brush.fillText(grid.labels[row] ?? "", 0, y + rowHeight / 2);
    }
    const begin = grid.starts[row] ?? 0;
    let clear = 0;
    const end = grid.starts[row + 1] ?? Number.MAX_SAFE_INTEGER;
    for (let column = 0; column < grid.columns; column += 1) {
      const at = begin + column * length;
      const place = Math.round((at - grid.start) / length);
      if (place < 0 || place >= grid.count || at >= end) continue;
      const kind = kinds[place] ?? 0;
      const x = edge(column);
      const wide = edge(column + 1) - x - gap;
      brush.fillStyle = fills[kind] ?? "";
      // What is odd is never too thin to be seen, even if it hides what follows it.
      if (kind === 0 && x < clear) continue;
      brush.fillRect(x, y + 1, kind === 0 ? wide + seam : Math.max(ODD, wide), rowHeight - 2);
      if (kind !== 0) clear = x + ODD;
    }
  }
  const at = chosen === null ? null : startOf(chosen);
  if (at !== null) {
    const [row, column] = placeOf(grid, at);
    brush.strokeStyle = colour("--text");
    brush.lineWidth = 2;
    brush.strokeRect(edge(column) - 1, row * rowHeight - top, Math.max(ODD, edge(column + 1) - edge(column)) + 1, rowHeight);
  }
}
