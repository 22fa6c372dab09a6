/** Light or dark: as the system has it, until somebody chooses. */
const KEPT = "penstock.theme";

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Changes to the other theme, and says whether it is the dark one. */
export function toggleTheme(): boolean {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem(KEPT, next);
  window.dispatchEvent(new Event("penstock.theme"));
  return next === "dark";
}

/** Is told when the colours change, so that what is drawn on a canvas is drawn anew. */
export function onTheme(listener: () => void): () => void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", listener);
  window.addEventListener("penstock.theme", listener);
  return () => {
    system.removeEventListener("change", listener);
    window.removeEventListener("penstock.theme", listener);
  };
}
