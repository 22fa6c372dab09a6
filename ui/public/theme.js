// Runs before the first paint, so that the page never flashes in the wrong theme: the saved one, or
// that of the system, which the page then follows.
(function () {
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function set() {
    var saved = null;
    try {
      saved = localStorage.getItem("penstock.theme");
    } catch {
      // A browser without storage follows the system.
    }
    var theme = saved === "light" || saved === "dark" ? saved : system.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("penstock.theme"));
  }
  set();
  system.addEventListener("change", set);
})();
