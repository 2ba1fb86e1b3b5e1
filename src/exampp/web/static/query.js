// The heat map of a query: arrow keys move, Enter opens a cell.
"use strict";

(() => {
  const table = document.getElementById("heat");
  const panel = document.getElementById("panel");
  if (!table || !panel) return;
  const SILENT = "The server does not respond.";
  const rows = [...table.tBodies[0].rows];
  const first = rows.length ? [...rows[0].cells].findIndex((cell) => cell.dataset.at) : -1;
  const cellAt = (row, column) => rows[row]?.cells[first + column];
  const items = [...table.tHead.querySelectorAll("[data-item]")].map((head) => head.dataset.item);
  let current = null;
  // aborts the request of the panel; null if the panel is closed
  let opening = null;

  // ids are percent-encoded already
  const placeOf = (cell) => [rows.indexOf(cell.parentElement), cell.cellIndex - first];

  function select(cell, focus = true) {
    if (!cell || !cell.dataset.at) return;
    if (current) {
      current.tabIndex = -1;
      current.classList.remove("is-current");
    }
    current = cell;
    cell.tabIndex = 0;
    cell.classList.add("is-current");
    if (focus) {
      cell.focus({ preventScroll: true });
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  function address(cell, path) {
    const [, column] = placeOf(cell);
    const { query } = table.dataset;
    const { passage } = cell.parentElement.dataset;
    return `${document.body.dataset.root}${path}?query=${query}&item=${items[column]}&passage=${passage}`;
  }

  async function open(cell) {
    select(cell, false);
    opening?.abort();
    const { signal } = (opening = new AbortController());
    panel.setAttribute("aria-busy", "true");
    try {
      const answer = await window.part(address(cell, "cell"), { signal });
      panel.innerHTML = await answer.text();
      window.htmx?.process(panel);
    } catch {
      if (!signal.aborted) panel.textContent = SILENT;
    }
    if (signal.aborted) return;
    panel.removeAttribute("aria-busy");
    panel.hidden = false;
    document.body.classList.add("has-panel");
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function close() {
    opening?.abort();
    opening = null;
    panel.removeAttribute("aria-busy");
    panel.hidden = true;
    document.body.classList.remove("has-panel");
    current?.focus();
  }

  const step = (rowStep, columnStep) => {
    const [row, column] = placeOf(current);
    const to = cellAt(
      Math.min(rows.length - 1, Math.max(0, row + rowStep)),
      Math.min(items.length - 1, Math.max(0, column + columnStep)),
    );
    select(to);
    if (opening) open(to);
  };

  const keys = {
    ArrowUp: () => step(-1, 0),
    ArrowDown: () => step(1, 0),
    ArrowLeft: () => step(0, -1),
    ArrowRight: () => step(0, 1),
    PageUp: () => step(-10, 0),
    PageDown: () => step(10, 0),
    Home: () => step(0, -items.length),
    End: () => step(0, items.length),
    Enter: () => open(current),
    " ": () => open(current),
    Escape: close,
    j: () => location.assign(address(current, "judge") + "&order=cell"),
  };

  table.addEventListener("keydown", (event) => {
    if (!event.target.dataset.at || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act || (event.key === "j" && localStorage.getItem("exampp.keys") === "off")) return;
    event.preventDefault();
    select(event.target, false);
    act();
  });
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-at]");
    if (!cell) return;
    select(cell);
    open(cell);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  panel.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) close();
  });
  panel.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const place = placeOf(current);
    const shown = opening;
    const at = address(current, "query/square");
    // arrow keys work while the request is pending
    current.focus({ preventScroll: true });
    const refusal = await window.part(form.action, { method: "POST", body }).then(
      async (answer) => (answer.ok ? "" : answer.text()),
      () => SILENT,
    );
    if (refusal) {
      if (opening !== shown) await open(cellAt(...place));
      panel.querySelector("[role=alert]")?.replaceChildren(refusal);
      return;
    }
    const refreshed = await window.part(at).catch(() => ({ ok: false }));
    if (refreshed.ok) {
      const holder = document.createElement("template");
      holder.innerHTML = `<table><tbody><tr>${await refreshed.text()}</tr></tbody></table>`;
      const fresh = holder.content.querySelector("td");
      const before = cellAt(...place);
      const hadFocus = before === document.activeElement;
      before.replaceWith(fresh);
      if (current === before) select(fresh, hadFocus);
    }
    if (opening === shown) await open(cellAt(...place));
  });

  const start = cellAt(0, 0);
  if (start) start.tabIndex = 0;
})();
