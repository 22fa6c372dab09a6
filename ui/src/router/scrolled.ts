/**
 * How far lists were scrolled, kept with the entry of the history that they belong to: whoever
 * comes back to it, or loads the page again, finds them as they were left.
 */
type Tops = Readonly<Record<string, number>>;

/** Browsers refuse to change the history at every step of a scrolling list. */
const REST_MS = 150;

let tops: Tops = topsOf(window.history.state);
let timer: ReturnType<typeof setTimeout> | undefined;

function topsOf(state: unknown): Tops {
  return (state as { tops?: Tops } | null)?.tops ?? {};
}

export const topOf = (list: string): number => tops[list] ?? 0;

export function keepTop(list: string, top: number): void {
  if (topOf(list) === top) return;
  tops = { ...tops, [list]: top };
  clearTimeout(timer);
  timer = setTimeout(writeTops, REST_MS);
}

/** Writes what is kept to the entry that is left, or stays. */
export function writeTops(): void {
  clearTimeout(timer);
  window.history.replaceState({ tops }, "");
}

/** What a new entry begins with: lists of the same page stay as they are. */
export function nextTops(isSamePage: boolean): { readonly tops: Tops } {
  if (!isSamePage) tops = {};
  return { tops };
}

/** Another entry is shown now; what was not written of the last one is lost. */
export function takeTops(state: unknown): void {
  clearTimeout(timer);
  tops = topsOf(state);
}

window.addEventListener("pagehide", writeTops);
