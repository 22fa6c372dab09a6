/** The theme: that of the system until the user chooses one. `public/theme.js` sets it first. */
const STORAGE_KEY = "penstock.theme";
const CHANGED = "penstock.theme";

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

/** Switch to the other theme. */
export function toggleTheme(): boolean {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem(STORAGE_KEY, next);
  window.dispatchEvent(new Event(CHANGED));
  return next === "dark";
}

/** Call the listener when the colors change, so that a canvas can be drawn again. */
export function onTheme(listener: () => void): () => void {
  window.addEventListener(CHANGED, listener);
  return () => window.removeEventListener(CHANGED, listener);
}
