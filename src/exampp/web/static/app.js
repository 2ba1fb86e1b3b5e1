// Shared by every page: keyboard shortcuts, navigation, fields that submit themselves, and whole
// passages.
"use strict";

(() => {
  const SETTING = "exampp.keys";
  const GO_MILLISECONDS = 1200;
  let going = 0;

  const keysAreOn = () => localStorage.getItem(SETTING) !== "off";
  const isTyping = (element) =>
    element.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

  const KEPT_CHARACTERS = 30_000;

  // fetch a part of this page, for the grader and bank that it shows; a decision outlives the page
  window.part = (address, options = {}) =>
    fetch(address, {
      ...options,
      keepalive: options.method === "POST" && String(options.body).length < KEPT_CHARACTERS,
      headers: { "HX-Request": "true", "X-Choice": document.body.dataset.choice ?? "" },
    });

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
    // a click outside the dialog has the dialog itself as its target
    if (event.target.matches("dialog[open]")) event.target.close();
  });

  // replace the passage alone: text typed next to it stays
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-whole]");
    if (!link) return;
    event.preventDefault();
    const answer = await window.part(link.href).catch(() => ({ ok: false }));
    const holder = document.createElement("template");
    if (answer.ok) holder.innerHTML = await answer.text();
    const whole = holder.content.querySelector(".passage");
    if (!whole) {
      link.nextElementSibling.textContent = "(cannot be loaded now)";
      return;
    }
    const hadFocus = link === document.activeElement;
    link.closest(".passage").replaceWith(whole);
    if (hadFocus) {
      whole.tabIndex = -1;
      whole.focus({ preventScroll: true });
    }
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    if (event.target.matches("[data-setting=keys]")) {
      localStorage.setItem(SETTING, event.target.checked ? "on" : "off");
    }
  });

  // a filter stays in the address, so that the page can be reloaded and sent
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-address]");
    if (!form) return;
    const values = [...new FormData(form)].filter(([, value]) => value);
    history.replaceState(null, "", `?${new URLSearchParams(values)}`);
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
