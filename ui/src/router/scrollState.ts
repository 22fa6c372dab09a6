/** The scroll positions of the lists of a page, kept with its history entry. */
type ScrollTops = Readonly<Record<string, number>>;

/** Browsers limit how often the history may change. */
const REST_MS = 150;

let tops: ScrollTops = scrollOf(window.history.state);
let timer: ReturnType<typeof setTimeout> | undefined;

function scrollOf(state: unknown): ScrollTops {
  return (state as { tops?: ScrollTops } | null)?.tops ?? {};
}

export const savedScroll = (list: string): number => tops[list] ?? 0;

export function saveScroll(list: string, top: number): void {
  if (savedScroll(list) === top) return;
  tops = { ...tops, [list]: top };
  clearTimeout(timer);
  timer = setTimeout(writeScroll, REST_MS);
}

/** Write the positions to the current history entry. */
export function writeScroll(): void {
  clearTimeout(timer);
  window.history.replaceState({ tops }, "");
}

/** The state of a new entry: lists of the same page keep their positions. */
export function nextScroll(isSamePage: boolean): { readonly tops: ScrollTops } {
  if (!isSamePage) tops = {};
  return { tops };
}

/** Load the positions of another entry; positions not yet written are dropped. */
export function loadScroll(state: unknown): void {
  clearTimeout(timer);
  tops = scrollOf(state);
}

window.addEventListener("pagehide", writeScroll);
