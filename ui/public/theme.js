// Runs before anything is drawn, so that the page never flashes in the wrong theme: the one that was
// chosen, or the system's, which it then follows.
(function () {
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function set() {
    var kept = null;
    try {
      kept = localStorage.getItem("penstock.theme");
    } catch {
      // A browser that keeps nothing follows the system.
    }
    var theme = kept === "light" || kept === "dark" ? kept : system.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("penstock.theme"));
  }
  set();
  system.addEventListener("change", set);
})();
