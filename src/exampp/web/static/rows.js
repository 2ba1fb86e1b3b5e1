// Judging many cells on one page: keys decide the current one and go on to the next open one.
"use strict";

(() => {
  const list = document.getElementById("cells");
  if (!list) return;
  const { announce, text, send, replace, undo, onKey } = window.judging;
  const left = document.getElementById("left");
  const rows = () => [...list.querySelectorAll(".judge-row")];
  const isOpen = (row) => row.dataset.state === "open" && row.querySelector("form");
  let current = null;

  function goTo(row) {
    if (!row) return;
    current?.removeAttribute("aria-current");
    current = row;
    row.setAttribute("aria-current", "true");
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    const all = rows();
    goTo(all[Math.min(Math.max(all.indexOf(current) + by, 0), all.length - 1)]);
  }

  function next() {
    const all = rows();
    const at = all.indexOf(current);
    const open = [...all.slice(at + 1), ...all.slice(0, at)].find(isOpen);
    if (open) goTo(open);
    else announce("Every cell on this page is decided.");
  }

  function show(row, state, rating) {
    row.dataset.state = state;
    for (const button of row.querySelectorAll("button[name=rating]")) {
      button.toggleAttribute("aria-pressed", false);
      if (button.value === rating) button.setAttribute("aria-pressed", "true");
    }
    left.textContent = rows().filter(isOpen).length;
  }

  async function decide(row, rating) {
    const form = row?.querySelector("form");
    if (!form) return;
    const body = new URLSearchParams(new FormData(form));
    body.set("rating", rating);
    // of several ratings in a row, the last one stored counts, whichever are refused
    row.stored ??= { state: row.dataset.state, rating: row.dataset.rating ?? "" };
    row.unsent = (row.unsent ?? 0) + 1;
    show(row, "sent", rating);
    goTo(row);
    next();
    try {
      replace(await send(form.getAttribute("action"), body));
      row.stored = { state: "decided", rating };
    } catch (error) {
      announce(`Not saved: ${error.message}`, true);
      goTo(row);
    } finally {
      row.unsent -= 1;
      if (!row.unsent) show(row, row.stored.state, row.stored.rating);
    }
  }

  // the state of the cell now: an earlier decision may count again
  async function undone(href) {
    // the address ends with the order in which the cell came
    const row = rows().find((one) => `${href}&`.startsWith(`${one.dataset.case}&`));
    if (!row) {
      announce("Undone. The cell is not on this page; see the history.");
      return;
    }
    const holder = document.createElement("template");
    holder.innerHTML = await text(row.dataset.row);
    const fresh = holder.content.firstElementChild;
    row.replaceWith(fresh);
    left.textContent = rows().filter(isOpen).length;
    goTo(fresh);
  }

  function confirm() {
    const { automatic } = current?.dataset ?? {};
    if (automatic) decide(current, automatic);
    else announce("No grade to confirm. Choose a rating, or press s to skip.");
  }

  const press = (selector, within = document) => within?.querySelector(selector)?.click();
  const keys = {
    Enter: confirm,
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    s: () => step(1),
    u: () => undo(undone),
    r: () => current?.querySelector("[name=reason]")?.focus(),
    w: () => press("[data-whole]", current),
    b: () => press("#blind"),
    i: () => press("[data-opens=guidelines]"),
  };

  onKey((key) => {
    const rate = current?.querySelector(`button[data-key="${CSS.escape(key)}"]`);
    return rate ? () => decide(current, rate.value) : keys[key];
  });

  list.addEventListener("focusin", (event) => {
    const row = event.target.closest(".judge-row");
    if (!row || row === current) return;
    current?.removeAttribute("aria-current");
    current = row;
    row.setAttribute("aria-current", "true");
  });
  list.addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, value } = event.submitter ?? {};
    if (name === "rating") decide(event.target.closest(".judge-row"), value);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "undo") return;
    event.preventDefault();
    undo(undone);
  });

  goTo(rows().find((one) => `#${one.id}` === location.hash) ?? rows().find(isOpen) ?? rows()[0]);
})();
