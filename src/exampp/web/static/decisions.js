// Decisions are sent in order and at once; one that fails is sent again, and later ones wait for it.
// Shared by the pages that judge.
"use strict";

(() => {
  const status = document.getElementById("judged");
  if (!status) return;
  let sending = Promise.resolve();
  let unsent = 0;
  let refused = 0;

  function announce(text, isTrouble = false) {
    status.textContent = text;
    status.classList.toggle("is-trouble", isTrouble);
  }

  async function text(address, options = {}) {
    const answer = await window.part(address, options);
    const body = await answer.text();
    if (!answer.ok) {
      const trouble = new Error(body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim());
      // a proxy that lost the server answers in its place
      trouble.lasts = !answer.headers.has("retry-after") && ![502, 504].includes(answer.status);
      throw trouble;
    }
    return body;
  }

  async function post(address, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await text(address, { method: "POST", body });
      } catch (error) {
        if (error.lasts) throw error;
        announce("The server does not respond. The decision is not lost: it will be sent again.", true);
        await new Promise((wait) => setTimeout(wait, Math.min(8000, 500 * 2 ** attempt)));
      }
    }
  }

  function send(address, body) {
    unsent += 1;
    const before = refused;
    sending = sending.then(async () => {
      try {
        const html = await post(address, body);
        // the refusal of an earlier decision stays until a later one is made
        if (before === refused && status.classList.contains("is-trouble")) announce("");
        return html;
      } catch (error) {
        refused += 1;
        throw error;
      } finally {
        unsent -= 1;
      }
    });
    const answer = sending;
    sending = sending.catch(() => {});
    return answer;
  }

  // replace the parts that the server returns after each decision
  function replace(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    for (const fresh of [...holder.content.children]) {
      document.getElementById(fresh.id)?.replaceWith(fresh);
    }
  }

  // leave the page when every decision is stored; stay if one was refused, to show it
  async function leave(go) {
    const before = refused;
    while (unsent) {
      announce("Saving …");
      await sending;
    }
    if (refused === before) go();
  }

  // undo the last decision, then show its cell
  async function undo(show) {
    await sending;
    const last = document.querySelector("#recent [data-made]");
    if (!last) {
      announce("Nothing to undo in this session. See the history.");
      return;
    }
    const { made, case: href } = last.dataset;
    const action = document.getElementById("undo").getAttribute("action");
    try {
      replace(await send(action, new URLSearchParams({ number: made })));
      announce("Undone.");
      await show(href);
    } catch (error) {
      announce(`Undo failed: ${error.message}`, true);
    }
  }

  // run the shortcut that `find` returns for a key; typing and buttons keep their keys
  function onKey(find) {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]") || localStorage.getItem("exampp.keys") === "off") return;
      if (event.target.matches("input, textarea, select")) {
        if (event.target.name === "reason" && (event.key === "Escape" || event.key === "Enter")) {
          event.preventDefault();
          event.target.blur();
        }
        return;
      }
      if (event.key === "Enter" && event.target.matches("a, summary, button")) return;
      const act = find(event.key);
      if (!act || event.repeat) return;
      event.preventDefault();
      act();
    });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!unsent || !link || event.defaultPrevented || link.target || link.download) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    leave(() => location.assign(link.href));
  });
  document.addEventListener("submit", (event) => {
    if (!unsent || event.defaultPrevented || event.target.method === "dialog") return;
    if (event.target.id === "undo") return;
    event.preventDefault();
    leave(() => event.target.submit());
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsent) event.preventDefault();
  });

  window.judging = { announce, text, send, replace, leave, undo, onKey };
})();
