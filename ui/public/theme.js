// Runs before anything is drawn, so that the page never flashes in the wrong theme.
(function () {
  var kept = null;
  try {
    kept = localStorage.getItem("penstock.theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
