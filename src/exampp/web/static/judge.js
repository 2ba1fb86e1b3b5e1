// Judging: one cell at a time by keyboard. The next cells are prefetched.
"use strict";

(() => {
  const stage = document.getElementById("stage");
  if (!stage) return;
  const { announce, text, send, replace, leave, undo, onKey } = window.judging;
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
  let acting = Promise.resolve();
  let waiting = 0;

  const now = () => stage.firstElementChild;
  const form = () => stage.querySelector("form");

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
      const { over } = document.getElementById("progress").dataset;
      if (over) leave(() => location.assign(over));
    } catch (error) {
      announce(`Not saved: ${error.message}`, true);
      await show(here, true);
      const field = form()?.querySelector("[name=reason]");
      if (field && at === here) field.value = why;
    }
  }

  const takeBack = () =>
    undo(async (href) => {
      progress();
      const known = places.findIndex((one) => one.href === href);
      if (known < 0) places.splice(at, 0, { href, left: places[at]?.left ?? "1" });
      await show(known < 0 ? at : known, true);
    });

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
    u: takeBack,
  };
  // these act immediately: text follows `r`
  const atOnce = {
    r: reason,
    w: whole,
    b: press("#blind"),
    i: press("[data-opens=guidelines]"),
  };

  onKey((key) => {
    const rate = stage.querySelector(`button[data-key="${CSS.escape(key)}"]`);
    const act = rate ? (seen) => decide(rate.value, seen) : keys[key];
    return act ? () => inTurn(act) : atOnce[key];
  });

  stage.addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, value } = event.submitter ?? {};
    if (name === "rating") inTurn((seen) => decide(value, seen));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "undo") return;
    event.preventDefault();
    inTurn(takeBack);
  });

  fetched.set(places[0]?.href, Promise.resolve(stage.innerHTML));
  ahead();
  stage.querySelector("[data-first]")?.focus({ preventScroll: true });
})();
