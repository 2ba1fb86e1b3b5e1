// Editing a bank: lines for new items, the other text after a conflict, unsaved changes.
"use strict";

(() => {
  const form = document.getElementById("bank");
  if (!form) return;
  const lines = document.getElementById("new-lines");
  let saving = false;

  const recompute = () => form.dispatchEvent(new Event("impact"));
  const isChanged = () =>
    [...form.querySelectorAll("textarea, input:not([type=hidden], [name=reason])")].some((field) =>
      field.type === "checkbox"
        ? field.checked !== field.defaultChecked
        : field.value !== field.defaultValue,
    );

  function another() {
    const line = lines.lastElementChild.cloneNode(true);
    line.querySelector("textarea").value = "";
    line.querySelector("[name=new-weight]").value = "1";
    lines.append(line);
    line.querySelector("textarea").focus();
  }

  document.getElementById("another").addEventListener("click", another);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input, textarea, select") || event.key !== "n") return;
    if (document.querySelector("dialog[open]") || localStorage.getItem("exampp.keys") === "off") return;
    event.preventDefault();
    another();
  });

  form.addEventListener("click", (event) => {
    const take = event.target.closest("[data-take]");
    if (!take) return;
    const { take: key } = take.dataset;
    const theirs = form.querySelector(`[data-theirs="${key}"]`);
    form.querySelector(`[name="text-${key}"]`).value = theirs.content.textContent;
    recompute();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name?.startsWith("retired-")) {
      event.target.closest(".line").classList.toggle("is-retired", event.target.checked);
    }
  });
  form.addEventListener("submit", () => {
    saving = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!saving && isChanged()) event.preventDefault();
  });
  const isProposed = [...lines.querySelectorAll("textarea")].some((field) => field.value);
  if (form.querySelector(".is-clash, .trouble") || isProposed || isChanged()) {
    form.addEventListener("htmx:after:init", recompute, { once: true });
  }
})();
