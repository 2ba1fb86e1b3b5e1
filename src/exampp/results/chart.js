"use strict";
// Drawings with values: the pointer or the arrow keys choose a mark, or a cell of a heat map. Its values are
// written below the drawing; the marks of its series stay, the others fade. Without script a mark has its title.
(() => {
  const valuesOf = (drawing) => [...drawing.querySelectorAll("[data-value]")];
  const seriesOf = (mark) => mark.getAttribute("stroke") || mark.getAttribute("fill");
  const rowOf = (mark) => mark.querySelector("title").textContent.split(/, |: /)[0];

  function choose(drawing, mark) {
    const all = valuesOf(drawing);
    // one colour for all: the marks of the same row are the series
    const of = new Set(all.map(seriesOf)).size > 1 ? seriesOf : rowOf;
    for (const one of all) {
      one.classList.toggle("is-value", one === mark);
      one.classList.toggle("is-faded", Boolean(mark) && of(one) !== of(mark));
    }
    if (!mark) drawing.querySelector(".is-cell")?.remove();
    say(drawing, mark?.querySelector("title").textContent ?? "");
  }

  function say(drawing, text) {
    let says = drawing.nextElementSibling;
    if (!says?.matches(".chart-says")) {
      says = Object.assign(document.createElement("p"), { className: "chart-says" });
      says.setAttribute("role", "status");
      drawing.after(says);
    }
    says.textContent = text;
  }

  // ---- a heat map is one picture: the values of its cells are in the file of its data --------------

  const pictureOf = (drawing) => drawing?.dataset.drawing && drawing.querySelector("image");
  const files = new WeakMap();

  // fields in quotes may have commas and line breaks
  function parsed(text) {
    const rows = [[]];
    for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
      rows.at(-1).push(quoted?.replaceAll('""', '"') ?? plain);
      if (end !== ",") rows.push([]);
    }
    return rows.slice(1).filter((row) => row.length > 1);
  }

  async function cellsOf(drawing) {
    if (!files.has(drawing)) {
      const answer = fetch(drawing.dataset.drawing.replace(".svg", ".csv"));
      files.set(drawing, answer.then((one) => one.text()).then((text) => {
        const rows = parsed(text);
        const next = rows.findIndex(([system]) => system !== rows[0][0]);
        const columns = next < 0 ? rows.length : next;
        return { rows, columns, lines: rows.length / columns };
      }));
    }
    return files.get(drawing);
  }

  // `place` gives the column and the row from their numbers
  async function chooseCell(drawing, place) {
    const picture = pictureOf(drawing);
    const { rows, columns, lines } = await cellsOf(drawing);
    const [x, y] = place(columns, lines).map((at, n) => Math.min([columns, lines][n] - 1, Math.max(0, at)));
    drawing.cell = [x, y];
    let frame = drawing.querySelector(".is-cell");
    if (!frame) {
      frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      frame.setAttribute("class", "is-cell");
      frame.setAttribute("transform", picture.getAttribute("transform") ?? "");
      picture.after(frame);
    }
    const wide = picture.getAttribute("width") / columns, high = picture.getAttribute("height") / lines;
    const sides = { x: x * wide, y: y * high, width: wide, height: high };
    for (const [name, value] of Object.entries(sides)) frame.setAttribute(name, String(value));
    const [system, query, value, difference] = rows[y * columns + x];
    const sign = Number(difference) < 0 ? "" : "+";
    say(drawing, `${system} on query ${query}: ${value === "" ? "no value" : `${Number(value).toFixed(3)}, ${sign}${Number(difference).toFixed(3)} to the mean of the query`}`);
  }

  document.addEventListener("pointermove", (event) => {
    if (event.target.localName !== "image") return;
    const drawing = drawingOf(event), box = event.target.getBoundingClientRect();
    if (!pictureOf(drawing)) return;
    chooseCell(drawing, (columns, lines) => [
      Math.floor((event.clientX - box.left) / box.width * columns), Math.floor((event.clientY - box.top) / box.height * lines)]);
  });

  // ---- pointer and keys ----------------------------------------------------------------------------

  const drawingOf = (event) => event.target.closest?.(".drawing");
  document.addEventListener("pointerover", (event) => {
    const drawing = drawingOf(event);
    const mark = event.target.closest?.("[data-value]");
    if (drawing && mark) choose(drawing, mark);
  });
  document.addEventListener("pointerout", (event) => {
    const drawing = drawingOf(event);
    if (drawing && event.target.closest("[data-value], image") && drawing !== document.activeElement) choose(drawing, null);
  });
  document.addEventListener("focusout", (event) => {
    const drawing = drawingOf(event);
    if (drawing === event.target) choose(drawing, null);
  });
  document.addEventListener("keydown", (event) => {
    const drawing = drawingOf(event);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!drawing || !(step || event.key === "Escape") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (pictureOf(drawing)) {
      event.preventDefault();
      if (!step) return choose(drawing, null);
      const [x, y] = drawing.cell ?? [0, 0], starts = !drawing.cell, down = /Up|Down/.test(event.key);
      chooseCell(drawing, () => (starts ? [0, 0] : [down ? x : x + step, down ? y + step : y]));
      return;
    }
    const all = valuesOf(drawing).filter((one) => one.localName === "path");
    if (!all.length) return;
    event.preventDefault();
    const at = all.findIndex((one) => one.classList.contains("is-value"));
    const next = Math.min(all.length - 1, Math.max(0, at < 0 ? (step === Infinity ? Infinity : 0) : at + step));
    choose(drawing, event.key === "Escape" ? null : all[next]);
  });

  // a page of the server: the drawing replaces its note of progress
  for (const drawing of document.querySelectorAll("[data-drawing]")) {
    fetch(drawing.dataset.drawing).then(async (answer) => {
      if (!answer.ok) throw new Error(answer.statusText);
      drawing.innerHTML = await answer.text();
      if (valuesOf(drawing).length || pictureOf(drawing)) drawing.ariaLabel += ". Arrow keys read its values";
    }).catch(() => { drawing.textContent = "The plot cannot be drawn now. Reload the page."; });
  }
})();
