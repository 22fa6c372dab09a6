/** How wide the columns of a table are, and in which order they come. */
interface Wide {
  readonly width?: string;
  readonly wide?: boolean;
}

const WIDTH = "minmax(6rem, 1fr)";

export const widthOf = (column: Wide): string => column.width ?? WIDTH;

/** What all columns together need at least; where there is less room, the table scrolls sideways. */
export function leastOf(columns: readonly Wide[]): string {
  return columns.map((column) => /^minmax\(([^,]+),/.exec(widthOf(column))?.[1] ?? widthOf(column)).join(" + ");
}

/** On a narrow screen what matters most comes first, and the rest is scrolled to. */
export function ordered<T extends Wide>(columns: readonly T[], isNarrow: boolean): readonly T[] {
  return isNarrow ? [...columns.filter((each) => !each.wide), ...columns.filter((each) => each.wide)] : columns;
}
