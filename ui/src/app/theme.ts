/** Light or dark: as the system has it, until somebody chooses. `public/theme.js` sets it first. */
const KEPT = "penstock.theme";
const CHANGED = "penstock.theme";

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

/** Changes to the other theme, and says whether it is the dark one. */
export function toggleTheme(): boolean {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem(KEPT, next);
  window.dispatchEvent(new Event(CHANGED));
  return next === "dark";
}

/** Is told when the colours change, so that what is drawn on a canvas is drawn anew. */
export function onTheme(listener: () => void): () => void {
  window.addEventListener(CHANGED, listener);
  return () => window.removeEventListener(CHANGED, listener);
}
