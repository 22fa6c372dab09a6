/** The widths and the order of the columns of a table. */
interface Wide {
  readonly width?: string;
  readonly wide?: boolean;
}

const WIDTH = "minmax(6rem, 1fr)";

export const widthOf = (column: Wide): string => column.width ?? WIDTH;

/** The least width of all columns together; in less space the table scrolls sideways. */
export function leastOf(columns: readonly Wide[]): string {
  return columns
    .map((column) => /^minmax\(([^,]+),/.exec(widthOf(column))?.[1] ?? widthOf(column))
    .join(" + ");
}

/** Move the `wide` columns to the end on a narrow screen. */
export function ordered<T extends Wide>(columns: readonly T[], isNarrow: boolean): readonly T[] {
  return isNarrow
    ? [...columns.filter((each) => !each.wide), ...columns.filter((each) => each.wide)]
    : columns;
}
