/** A table of any length: only the rows in sight are drawn, and only their pages are read. */
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { navigate } from "../router/router";
import { leastOf, ordered, widthOf } from "./columns";
import { useNarrow } from "./narrow";
import { useRights } from "./rights";
import { useKeptScroll } from "./scroll";

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** A width as CSS grid knows it: `120px`, `2fr`, `minmax(10rem, 1fr)`. */
  readonly width?: string;
  readonly end?: boolean;
  /** On a narrow screen this column comes after the others, which are seen first. */
  readonly wide?: boolean;
  /** On a narrow screen the second line tells it. */
  readonly told?: boolean;
  /** Its cells hold what only an administrator may do: to others it is not shown. */
  readonly acts?: boolean;
}

interface Props<T> {
  columns: readonly Column<T>[];
  count: number;
  /** The row at a place, or undefined while it is being read. */
  row: (at: number) => T | undefined;
  /** Is told which rows are in sight. */
  onRange?: (first: number, last: number) => void;
  /** Where Enter on a row leads. */
  to?: (row: T) => string;
  /** What marks a row as chosen. */
  isChosen?: (row: T) => boolean;
  label: string;
  /** How many rows are in sight at most. */
  rows?: number;
  /** What a narrow screen shows in a second line of each row, instead of the columns that are `told` there. */
  below?: (row: T) => ReactNode;
}

const HEAD = 30;
const LINE = 34;
const SECOND_LINE = 22;
const AROUND = 8;

export function Table<T>({ columns: all, count, row, onRange, to, isChosen, label, rows = 18, below }: Props<T>) {
  const mayAct = useRights().allows("admin");
  const isNarrow = useNarrow();
  const hasBelow = isNarrow && below !== undefined;
  const columns = ordered(all.filter((column) => (mayAct || !column.acts) && !(hasBelow && column.told)), isNarrow);
  const rowHeight = hasBelow ? LINE + SECOND_LINE : LINE;
  const box = useRef<HTMLDivElement>(null);
  const keep = useKeptScroll(label, box);
  const [top, setTop] = useState(0);
  const [hasMore, setMore] = useState(false);
  const [at, setAt] = useState(0);
  const height = Math.min(count, rows) * rowHeight;
  const first = Math.max(0, Math.floor(top / rowHeight) - AROUND);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + AROUND);
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  useLayoutEffect(() => {
    if (box.current && box.current.scrollTop !== top) setTop(box.current.scrollTop);
  }, [count, top]);
  const look = useCallback(() => {
    const view = box.current;
    if (!view) return;
    setTop(view.scrollTop);
    setMore(view.scrollLeft + view.clientWidth < view.scrollWidth - 1);
  }, []);
  useLayoutEffect(() => {
    if (!box.current) return;
    const watcher = new ResizeObserver(look);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [look]);

  const move = useCallback(
    (event: KeyboardEvent) => {
      const next = step(event.key, at, count, rows);
      if (next === null) {
        const chosen = row(at);
        if (event.key === "Enter" && event.target === event.currentTarget && chosen && to) navigate(to(chosen));
        return;
      }
      event.preventDefault();
      setAt(next);
      const view = box.current;
      if (!view) return;
      if (next * rowHeight < view.scrollTop) view.scrollTop = next * rowHeight;
      if ((next + 1) * rowHeight > view.scrollTop + height) view.scrollTop = (next + 1) * rowHeight - height;
    },
    [at, count, row, rows, to, height, rowHeight],
  );

  const style = { "--columns": columns.map(widthOf).join(" "), "--least": leastOf(columns), "--between": columns.length - 1 } as React.CSSProperties;
  return (
    <div className={`table ${hasMore ? "more" : ""}`} role="table" aria-label={label} aria-rowcount={count + 1} style={style}>
      <div
        className="table-view"
        ref={box}
        role="rowgroup"
        tabIndex={0}
        aria-label={`${label}: rows`}
        onScroll={() => {
          look();
          keep();
        }}
        onKeyDown={move}
        style={{ maxHeight: HEAD + rows * rowHeight + 1 }}
      >
        <div className="table-row head" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <div key={column.title} role="columnheader" className={cellClass(column)}>
              {column.title}
            </div>
          ))}
        </div>
        <div className="table-room" role="presentation" style={{ height: count * rowHeight }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, offset) => {
            const place = first + offset;
            const value = row(place);
            const marks = `${place === at ? "at" : ""} ${value !== undefined && isChosen?.(value) ? "chosen" : ""}`;
            return (
              <div key={place} className={`table-row ${hasBelow ? "two" : ""} ${marks}`} role="row" aria-rowindex={place + 2} style={{ transform: `translateY(${place * rowHeight}px)` }} onClick={() => setAt(place)}>
                {columns.map((column) => (
                  <div key={column.title} role="cell" className={cellClass(column)}>
                    {value === undefined ? <span className="blank" /> : column.cell(value)}
                  </div>
                ))}
                {hasBelow && (
                  <div role="cell" className="below muted">
                    {value !== undefined && below(value)}
                  </div>
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function cellClass<T>(column: Column<T>): string {
  return column.end ? "end" : "";
}

function step(key: string, at: number, count: number, page: number): number | null {
  const moves: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 };
  const next = moves[key];
  return next === undefined ? null : Math.max(0, Math.min(count - 1, next));
}

/** A table of rows that are all here. */
export function Rows<T>({ of: list, ...rest }: Omit<Props<T>, "count" | "row"> & { of: readonly T[] }) {
  return <Table {...rest} count={list.length} row={(at) => list[at]} />;
}
