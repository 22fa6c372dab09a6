// Runs in the page before anything of its own. It says when something was first to be seen, and how
// long after a hand's doing its effect was. What one frame draws is on the screen when the next but
// one begins.
(() => {
  const painted = (then) => requestAnimationFrame(() => requestAnimationFrame(() => then(performance.now())));
  const watch = (holds, then) => {
    const look = () => (document.body && holds() ? painted(then) : requestAnimationFrame(look));
    look();
  };
  window.bench = {
    took: null,
    seen: (holds) => new Promise((done) => watch(holds, done)),
    arm(kind, holds) {
      window.bench.took = null;
      const begin = (event) => watch(holds, (at) => (window.bench.took = at - event.timeStamp));
      window.addEventListener(kind, begin, { capture: true, once: true });
    },
  };
})();
