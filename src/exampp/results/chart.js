"use strict";
// Drawings with values: the pointer or the arrow keys choose a mark, whose values are written below the
// drawing; the marks of its series stay, the others fade. Without script a mark still has its title.
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
    let says = drawing.nextElementSibling;
    if (!says?.matches(".chart-says")) {
      says = Object.assign(document.createElement("p"), { className: "chart-says" });
      says.setAttribute("role", "status");
      drawing.after(says);
    }
    says.textContent = mark?.querySelector("title").textContent ?? "";
  }

  const drawingOf = (event) => event.target.closest?.(".drawing");
  document.addEventListener("pointerover", (event) => {
    const drawing = drawingOf(event);
    const mark = event.target.closest?.("[data-value]");
    if (drawing && mark) choose(drawing, mark);
  });
  document.addEventListener("pointerout", (event) => {
    const drawing = drawingOf(event);
    if (drawing && event.target.closest("[data-value]") && drawing !== document.activeElement) choose(drawing, null);
  });
  document.addEventListener("focusout", (event) => {
    const drawing = drawingOf(event);
    if (drawing === event.target) choose(drawing, null);
  });
  document.addEventListener("keydown", (event) => {
    const drawing = drawingOf(event);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!drawing || !(step || event.key === "Escape") || event.ctrlKey || event.metaKey || event.altKey) return;
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
      if (valuesOf(drawing).length) drawing.ariaLabel += ". Arrow keys read its values";
    }).catch(() => { drawing.textContent = "The plot cannot be drawn now. Reload the page."; });
  }
})();
