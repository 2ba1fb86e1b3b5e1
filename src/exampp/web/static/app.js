// What every page shares: the list of keys, going places, and fields that submit themselves.
"use strict";

(() => {
  const SETTING = "exampp.keys";
  const GO_MILLISECONDS = 1200;
  let going = 0;

  const keysAreOn = () => localStorage.getItem(SETTING) !== "off";
  const isTyping = (element) =>
    element.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

  const opened = () => document.querySelector("dialog[open]");

  function open(id) {
    const dialog = document.getElementById(id);
    if (dialog && !dialog.open) dialog.showModal();
  }

  document.documentElement.classList.add("scripted");

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) {
      event.preventDefault();
      open(opener.dataset.opens);
    }
    // a click beside a dialog falls on the dialog itself
    if (event.target.matches("dialog[open]")) event.target.close();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    if (event.target.matches("[data-setting=keys]")) {
      localStorage.setItem(SETTING, event.target.checked ? "on" : "off");
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!keysAreOn() || opened()) return;
    if (Date.now() - going < GO_MILLISECONDS) {
      going = 0;
      const place = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (place) {
        event.preventDefault();
        place.click();
      }
      return;
    }
    if (event.key === "g") {
      going = Date.now();
      event.stopImmediatePropagation();
    } else if (event.key === "?") {
      event.preventDefault();
      open("keys");
    } else if (event.key === "/") {
      const fields = [...document.querySelectorAll("[data-filter], [data-search]")];
      const filter = fields.find((field) => field.matches("[data-filter]")) ?? fields[0];
      if (filter?.offsetParent) {
        event.preventDefault();
        filter.focus();
        filter.select();
      }
    }
  }, true);

  const setting = document.querySelector("[data-setting=keys]");
  if (setting) setting.checked = keysAreOn();
})();
