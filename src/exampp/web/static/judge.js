// Judging: one cell at a time by keyboard. The next cells are prefetched. Decisions are sent in
// order; if one fails, later ones wait for it.
"use strict";

(() => {
  const stage = document.getElementById("stage");
  if (!stage) return;
  const status = document.getElementById("judged");
  const page = document.querySelector(".judge-page");
  const left = document.getElementById("left");
  const AHEAD = 4;
  const PROGRESS_MILLISECONDS = 150;
  const places = [...document.querySelectorAll("#next-cells a")].map((link) => ({
    href: link.getAttribute("href"),
    left: link.dataset.left,
  }));
  const fetched = new Map();
  let at = 0;
  let sending = Promise.resolve();
  let unsent = 0;
  let lost = false;
  let acting = Promise.resolve();
  let waiting = 0;

  const now = () => stage.firstElementChild;
  const form = () => stage.querySelector("form");

  function announce(text, isTrouble = false) {
    status.textContent = text;
    status.classList.toggle("is-trouble", isTrouble);
  }

  async function text(address, options = {}) {
    const answer = await window.part(address, options);
    const body = await answer.text();
    if (!answer.ok) {
      const trouble = new Error(body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim());
      trouble.lasts = !answer.headers.has("retry-after");
      throw trouble;
    }
    return body;
  }

  function ahead() {
    for (const { href } of places.slice(at, at + AHEAD + 1)) {
      if (fetched.has(href)) continue;
      const coming = text(href);
      coming.catch(() => fetched.delete(href));
      fetched.set(href, coming);
    }
  }

  function put(html) {
    stage.innerHTML = html;
    stage.querySelector("[data-first]")?.focus({ preventScroll: true });
    page.scrollIntoView();
  }

  async function show(n, again = false) {
    if (n >= places.length) {
      // no more cells on this page: load the next ones
      leave(() => location.assign(stage.dataset.more));
      return;
    }
    at = Math.max(0, n);
    const { href, left: count } = places[at];
    if (again) fetched.delete(href);
    ahead();
    if (left) left.textContent = count;
    try {
      const html = await fetched.get(href);
      // another cell may have been requested meanwhile
      if (places[at].href === href) put(html);
    } catch (error) {
      announce(`This cell cannot be shown: ${error.message}`, true);
    }
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
    sending = sending.then(async () => {
      try {
        return await post(address, body);
      } catch (error) {
        lost = true;
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
    const { over } = document.getElementById("progress").dataset;
    if (over) leave(() => location.assign(over));
  }

  // leave the page when every decision is stored; stay if one was refused, to show it
  async function leave(go) {
    lost = false;
    while (unsent) {
      announce("Saving …");
      await sending;
    }
    if (!lost) go();
  }

  // update the progress of a sample a moment later: decisions do not wait for it
  function progress() {
    const { progress: address } = stage.dataset;
    if (!address) return;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      document.getElementById("progress").innerHTML = await text(address).catch(() => "");
    }, PROGRESS_MILLISECONDS);
  }

  // run actions in order; a decision counts only for the cell that was shown when it was typed
  function inTurn(act) {
    const seen = now();
    acting = acting.catch(() => {}).then(() => act(seen));
  }

  async function decide(rating, article) {
    if (article !== now() || article?.dataset.state !== "open") return;
    const here = at;
    const body = new URLSearchParams(new FormData(form()));
    body.set("rating", rating);
    article.dataset.state = "sent";
    arrive(send(form().getAttribute("action"), body), here, body.get("reason"));
    await show(here + 1);
  }

  async function arrive(answer, here, why) {
    try {
      replace(await answer);
      progress();
      if (status.classList.contains("is-trouble")) announce("");
    } catch (error) {
      announce(`Not saved: ${error.message}`, true);
      await show(here, true);
      const field = form()?.querySelector("[name=reason]");
      if (field && at === here) field.value = why;
    }
  }

  async function undo() {
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
      progress();
      announce("Undone.");
      const known = places.findIndex((one) => one.href === href);
      if (known < 0) places.splice(at, 0, { href, left: places[at]?.left ?? "1" });
      await show(known < 0 ? at : known, true);
    } catch (error) {
      announce(`Undo failed: ${error.message}`, true);
    }
  }

  const next = () => show(at + 1);
  const back = () => show(at - 1, true);
  const reason = () => form()?.querySelector("[name=reason]")?.focus();
  const whole = () => stage.querySelector("[data-whole]")?.click();
  const press = (selector) => () => document.querySelector(selector)?.click();

  function confirm(seen) {
    const { automatic } = seen?.dataset ?? {};
    if (automatic) return decide(automatic, seen);
    return announce("No grade to confirm. Choose a rating, or press s to skip.");
  }

  const keys = {
    Enter: confirm,
    s: next,
    ArrowRight: next,
    ArrowLeft: back,
    u: undo,
  };
  // these act immediately: text follows `r`
  const atOnce = {
    r: reason,
    w: whole,
    b: press("#blind"),
    i: press("[data-opens=guidelines]"),
  };

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
    const rate = stage.querySelector(`button[data-key="${CSS.escape(event.key)}"]`);
    const act = rate ? (seen) => decide(rate.value, seen) : keys[event.key];
    if (!(act || atOnce[event.key]) || event.repeat) return;
    event.preventDefault();
    if (act) inTurn(act);
    else atOnce[event.key]();
  });

  stage.addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, value } = event.submitter ?? {};
    if (name === "rating") inTurn((seen) => decide(value, seen));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "undo") return;
    event.preventDefault();
    inTurn(undo);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!unsent || !link || event.defaultPrevented || link.target || link.download) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    leave(() => location.assign(link.href));
  });
  document.addEventListener("submit", (event) => {
    if (!unsent || event.defaultPrevented || event.target.method === "dialog") return;
    event.preventDefault();
    leave(() => event.target.submit());
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsent) event.preventDefault();
  });

  fetched.set(places[0]?.href, Promise.resolve(stage.innerHTML));
  ahead();
  stage.querySelector("[data-first]")?.focus({ preventScroll: true });
})();
