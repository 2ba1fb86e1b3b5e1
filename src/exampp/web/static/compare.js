// Items side by side: keys move between items and pages, and open the cell of a system.
"use strict";

(() => {
  const shown = () =>
    [...document.querySelectorAll(".versus")].filter((one) => one.checkVisibility());
  const current = () => document.activeElement.closest(".versus");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    if (localStorage.getItem("exampp.keys") === "off" || document.querySelector("dialog[open]")) return;
    if (event.key === "n" || event.key === "p") {
      document.querySelector(`[rel=${event.key === "n" ? "next" : "prev"}]`)?.click();
      return;
    }
    const items = shown();
    if (!items.length) return;
    if (event.key === "j" || event.key === "k") {
      const at = items.indexOf(current());
      const next = event.key === "j" ? at + 1 : Math.max(at, 1) - 1;
      items[Math.min(next, items.length - 1)].focus();
    } else if (event.key === "a" || event.key === "b") {
      const link = (current() ?? items[0]).querySelector(`[data-judge="${event.key}"]`);
      if (link) link.click();
    }
  });
})();
