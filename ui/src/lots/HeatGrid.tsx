/** All lots of a dataset on one canvas, drawn from the ranges that the server lists. */
import {
  type KeyboardEvent,
  type MouseEvent,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { onTheme } from "../app/theme";
import { StatusIcon } from "../kit/Status";
import { LOT_KINDS, lookOf, UNLISTED } from "../kit/states";
import { count } from "../kit/format";
import {
  cellOf,
  type Grid,
  gridOf,
  hoursAbove,
  kindsOf,
  lotOfKind,
  lotAtPosition,
  positionOf,
  type Range,
  stepFrom,
} from "./grid";
import { type Interval, lengthOf, spanOf, startOf } from "./intervals";
import "./grid.css";

const LABEL = 78;
/** The width of the name of an hour, with its margin. */
const HOUR_WIDTH = 44;
const GAP_WIDTH_MIN = 2;
const VIEW = 420;
/** A key that is held down passes many lots; only the one where it stops is read. */
const REST_MS = 120;

interface Props {
  interval: Interval;
  first: string;
  count: number;
  ranges: readonly Range[];
  totals: Readonly<Record<string, number>>;
  there: number;
  /** Whether the server listed only the first ranges: the lots after them are unknown. */
  isCut: boolean;
  chosen: string | null;
  onChoose: (lot: string) => void;
}

export function HeatGrid({
  interval,
  first,
  count: lots,
  ranges,
  totals,
  there,
  isCut,
  chosen: saved,
  onChoose,
}: Props) {
  const grid = useMemo(() => gridOf(interval, first, lots), [interval, first, lots]);
  const kinds = useMemo(() => kindsOf(grid, ranges, LOT_KINDS, isCut), [grid, ranges, isCut]);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const [hover, setHover] = useState<{ lot: string; x: number; y: number } | null>(null);
  const [theme, setTheme] = useState(0);
  const [passed, setPassed] = useState<string | null>(null);
  const chosen = passed ?? saved;
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
  const viewHeight = Math.min(VIEW, height);

  // The newest lots come first into view, unless the user has scrolled to older ones.
  const isAtEnd = useRef(true);
  const isDrawn = width > 0;
  useLayoutEffect(() => {
    if (box.current && isDrawn && isAtEnd.current) box.current.scrollTop = height;
  }, [height, isDrawn]);
  const scrollToChosen = useEffectEvent(() => {
    const view = box.current;
    const at = chosen === null ? null : startOf(chosen);
    if (!view || !isDrawn || at === null) return;
    const y = positionOf(grid, at)[0] * rowHeight;
    const beyond =
      y < view.scrollTop ? view.scrollTop - y : y + rowHeight - view.scrollTop - viewHeight;
    // A near lot scrolls just into view, a distant one into the middle.
    if (beyond > viewHeight / 2) view.scrollTop = y - viewHeight / 2;
    else if (beyond > 0) view.scrollTop += y < view.scrollTop ? -beyond : beyond;
  });
  useLayoutEffect(() => scrollToChosen(), [chosen, isDrawn, rowHeight]);

  useEffect(() => {
    if (canvas.current && width)
      draw(canvas.current, {
        grid,
        kinds,
        cell,
        rowHeight,
        top,
        width: LABEL + cell * grid.columns,
        height: viewHeight,
        chosen,
      });
  }, [grid, kinds, cell, rowHeight, top, width, viewHeight, chosen, theme]);

  function lotUnder(event: MouseEvent): string | null {
    const view = canvas.current?.getBoundingClientRect();
    if (!view) return null;
    const column = Math.floor((event.clientX - view.left - LABEL) / cell);
    return lotAtPosition(grid, Math.floor((event.clientY - view.top + top) / rowHeight), column);
  }
  function point(event: MouseEvent): void {
    const lot = lotUnder(event);
    const view = box.current?.getBoundingClientRect();
    setHover(
      lot && view ? { lot, x: event.clientX - view.left, y: event.clientY - view.top } : null,
    );
  }
  function onKey(event: KeyboardEvent): void {
    const lot = stepFrom(grid, chosen, event.key);
    if (lot === null) return;
    event.preventDefault();
    if (event.repeat) setPassed(lot);
    else onChoose(lot);
  }
  const kindOf = (lot: string) =>
    LOT_KINDS[
      (kinds[Math.round(((startOf(lot) ?? 0) - grid.start) / lengthOf(interval))] ?? 0) - 1
    ] ?? "there";
  const summary = [
    `${count(there)} there`,
    ...LOT_KINDS.filter((kind) => totals[kind]).map(
      (kind) => `${count(totals[kind] ?? 0)} ${kind}`,
    ),
  ].join(", ");
  return (
    <div className="heat">
      <Legend
        totals={totals}
        there={there}
        onKind={(kind) => {
          const lot = lotOfKind(grid, kinds, LOT_KINDS.indexOf(kind) + 1, chosen);
          if (lot) onChoose(lot);
        }}
      />
      {isCut && (
        <p className="heat-cut toned tone-warn" role="note">
          Only the first {count(ranges.length)} ranges with a gap are listed: lots after{" "}
          {ranges.at(-1)?.last} are drawn as {UNLISTED}. The numbers count all lots.
        </p>
      )}
      <Axis grid={grid} cell={cell} />
      <div
        className="heat-view"
        ref={box}
        style={{ height: viewHeight }}
        onScroll={({ currentTarget: view }) => {
          setTop(view.scrollTop);
          isAtEnd.current = view.scrollTop + view.clientHeight >= view.scrollHeight - 1;
        }}
      >
        <div style={{ height }}>
          <canvas
            ref={canvas}
            tabIndex={0}
            role="img"
            aria-label={`${count(lots)} lots: ${summary}. ${chosen ? `Chosen: ${chosen}, ${kindOf(chosen)}.` : ""} Arrow keys choose a lot.`}
            onClick={(event) => {
              const lot = lotUnder(event);
              if (lot) onChoose(lot);
            }}
            onMouseMove={point}
            onMouseLeave={() => setHover(null)}
            onKeyDown={onKey}
          />
        </div>
      </div>
      {hover && (
        <div
          className="heat-tip"
          style={{ left: Math.min(hover.x + 14, Math.max(0, width - 230)), top: hover.y + 46 }}
        >
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

/** The colors and the number of lots of each kind; a click shows the next range of a kind. */
function Legend({
  totals,
  there,
  onKind,
}: {
  totals: Readonly<Record<string, number>>;
  there: number;
  onKind: (kind: string) => void;
}) {
  const entries = [
    ["there", there] as const,
    ...LOT_KINDS.map((kind) => [kind, totals[kind] ?? 0] as const),
  ].filter(([, number]) => number);
  return (
    <ul className="legend">
      {entries.map(([kind, number]) => (
        <li key={kind} className={`tone-${lookOf(kind).tone}`}>
          <i />
          <StatusIcon of={kind} />{" "}
          {kind === "there" || kind === UNLISTED ? (
            kind
          ) : (
            <button
              type="button"
              className="link"
              title={`Show the newest ${kind} lots, then the older ones`}
              onClick={() => onKind(kind)}
            >
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
  const marks = isByMonth ? [1, 5, 10, 15, 20, 25, 30] : hoursAbove(grid.columns, cell, HOUR_WIDTH);
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

/** Draw the rows in view. The canvas has the size of the view for any number of lots. */
function draw(
  canvas: HTMLCanvasElement,
  { grid, kinds, cell, rowHeight, top, width, height, chosen }: Drawing,
): void {
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const brush = canvas.getContext("2d");
  if (!brush) return;
  const style = getComputedStyle(canvas);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const fills = ["there", ...LOT_KINDS].map((kind) => color(`--${lookOf(kind).tone}-fill`));
  brush.scale(scale, scale);
  brush.clearRect(0, 0, width, height);
  brush.font = `11px ${color("--mono")}`;
  brush.textBaseline = "middle";
  const length = lengthOf(grid.interval);
  const gap = cell >= 5 ? 1 : 0;
  const seam = cell < 2 ? 0.5 : 0;
  // Edges between pixels blur, but cells below two pixels cannot be rounded.
  const edge = (column: number) => LABEL + (cell < 2 ? column * cell : Math.round(column * cell));
  const from = Math.max(0, Math.floor(top / rowHeight));
  const to = Math.min(grid.rows, Math.ceil((top + height) / rowHeight));
  const every = Math.ceil(14 / rowHeight);
  for (let row = from; row < to; row += 1) {
    const y = row * rowHeight - top;
    if (row % every === 0) {
      brush.fillStyle = color("--muted");
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
      // A gap is always wide enough to see, even if it hides the next lot.
      if (kind === 0 && x < clear) continue;
      brush.fillRect(
        x,
        y + 1,
        kind === 0 ? wide + seam : Math.max(GAP_WIDTH_MIN, wide),
        rowHeight - 2,
      );
      if (kind !== 0) clear = x + GAP_WIDTH_MIN;
    }
  }
  const at = chosen === null ? null : startOf(chosen);
  if (at !== null) {
    const [row, column] = positionOf(grid, at);
    brush.strokeStyle = color("--text");
    brush.lineWidth = 2;
    brush.strokeRect(
      edge(column) - 1,
      row * rowHeight - top,
      Math.max(GAP_WIDTH_MIN, edge(column + 1) - edge(column)) + 1,
      rowHeight,
    );
  }
}
