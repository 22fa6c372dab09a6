/** A table of any length: only the rows in view are drawn, and only their pages are read. */
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { navigate } from "../router/router";
import { savedScroll } from "../router/scrollState";
import { leastOf, ordered, widthOf } from "./columns";
import { useNarrow } from "./useNarrow";
import { useRights } from "./rights";
import { useScrollRestoration } from "./useScrollRestoration";

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** A width of CSS grid: `120px`, `2fr`, `minmax(10rem, 1fr)`. */
  readonly width?: string;
  readonly end?: boolean;
  /** On a narrow screen this column comes after the others. */
  readonly wide?: boolean;
  /** On a narrow screen the second line shows it instead. */
  readonly inBelow?: boolean;
  /** Its cells hold actions of an administrator; other keys do not see it. */
  readonly isAction?: boolean;
}

interface Props<T> {
  columns: readonly Column<T>[];
  count: number;
  /** The row at an index, or undefined while it is being read. */
  row: (at: number) => T | undefined;
  /** Takes the range of the rows in view. */
  onRange?: (first: number, last: number) => void;
  /** The address that Enter on a row opens. */
  to?: (row: T) => string;
  isChosen?: (row: T) => boolean;
  label: string;
  /** How many rows are in view at most. */
  rows?: number;
  /** The second line of a row on a narrow screen, in place of the columns that are `inBelow`. */
  below?: (row: T) => ReactNode;
}

const HEAD = 30;
const LINE = 34;
const SECOND_LINE = 22;
const OVERSCAN = 8;

export function Table<T>({
  columns: all,
  count,
  row,
  onRange,
  to,
  isChosen,
  label,
  rows = 18,
  below,
}: Props<T>) {
  const mayAct = useRights().allows("admin");
  const isNarrow = useNarrow();
  const hasBelow = isNarrow && below !== undefined;
  const columns = ordered(
    all.filter((column) => (mayAct || !column.isAction) && !(hasBelow && column.inBelow)),
    isNarrow,
  );
  const rowHeight = hasBelow ? LINE + SECOND_LINE : LINE;
  const box = useRef<HTMLDivElement>(null);
  const keepScroll = useScrollRestoration(label, box);
  const { hasMore, look } = useHasMore(box);
  const [at, setAt] = useState(0);
  const virtualizer = useVirtualizer({
    count,
    initialOffset: () => savedScroll(label),
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    // The head lies over the top of the box.
    scrollMargin: HEAD,
    scrollPaddingStart: HEAD,
  });
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, rowHeight]);
  const drawn = virtualizer.getVirtualItems();
  const first = drawn[0]?.index ?? 0;
  const last = (drawn.at(-1)?.index ?? -1) + 1;
  useEffect(() => onRange?.(first, last), [onRange, first, last]);

  function move(event: KeyboardEvent): void {
    const next = step(event.key, at, count, rows);
    if (next === null) {
      const current = row(at);
      if (event.key === "Enter" && event.target === event.currentTarget && current && to)
        navigate(to(current));
      return;
    }
    event.preventDefault();
    setAt(next);
    virtualizer.scrollToIndex(next);
  }

  const style = {
    "--columns": columns.map(widthOf).join(" "),
    "--least": leastOf(columns),
    "--between": columns.length - 1,
  } as React.CSSProperties;
  return (
    <div
      className={`table ${hasMore ? "more" : ""}`}
      role="table"
      aria-label={label}
      aria-rowcount={count + 1}
      style={style}
    >
      <div
        className="table-view"
        ref={box}
        role="rowgroup"
        tabIndex={0}
        aria-label={`${label}: rows`}
        onScroll={() => {
          look();
          keepScroll();
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
        <div
          className="table-room"
          role="presentation"
          style={{ height: virtualizer.getTotalSize() }}
        >
          {drawn.map(({ index, start }) => {
            const value = row(index);
            const marks = `${index === at ? "at" : ""} ${value !== undefined && isChosen?.(value) ? "chosen" : ""}`;
            return (
              <div
                key={index}
                className={`table-row ${hasBelow ? "two" : ""} ${marks}`}
                role="row"
                aria-rowindex={index + 2}
                style={{ transform: `translateY(${start - HEAD}px)` }}
                onClick={() => setAt(index)}
              >
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

/** Whether columns lie beyond the right edge of a box; `look` checks it after a scroll. */
function useHasMore(box: React.RefObject<HTMLDivElement | null>) {
  const [hasMore, setMore] = useState(false);
  const look = useCallback(() => {
    const view = box.current;
    if (view) setMore(view.scrollLeft + view.clientWidth < view.scrollWidth - 1);
  }, [box]);
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [box, look]);
  return { hasMore, look };
}

function cellClass<T>(column: Column<T>): string {
  return column.end ? "end" : "";
}

function step(key: string, at: number, count: number, page: number): number | null {
  const moves: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + page,
    PageUp: at - page,
    Home: 0,
    End: count - 1,
  };
  const next = moves[key];
  return next === undefined ? null : Math.max(0, Math.min(count - 1, next));
}

/** A table of rows that are all here. */
export function Rows<T>({
  of: list,
  ...rest
}: Omit<Props<T>, "count" | "row"> & { of: readonly T[] }) {
  return <Table {...rest} count={list.length} row={(at) => list[at]} />;
}
