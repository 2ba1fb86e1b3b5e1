// Judging: one cell at a time by keyboard. The next cells are fetched ahead; decisions are sent
// in their order, and one that did not arrive stops the walk until it has.
"use strict";

(() => {
  const stage = document.getElementById("stage");
  if (!stage) return;
  const said = document.getElementById("judged");
  const agreement = document.getElementById("agreement");
  const recent = document.getElementById("recent");
  const position = document.getElementById("position");
  const AHEAD = 4;
  const COMPARE_MILLISECONDS = 150;
  const HX = { "HX-Request": "true" };
  const places = [...document.querySelectorAll("#walk a")].map((link) => link.getAttribute("href"));
  const fetched = new Map();
  const made = [];
  let at = 0;
  let sending = Promise.resolve();
  let unsent = 0;
  let acting = Promise.resolve();
  let comparing = 0;

  const now = () => stage.firstElementChild;
  const form = () => stage.querySelector("form");

  function announce(text, isTrouble = false) {
    said.textContent = text;
    said.classList.toggle("is-trouble", isTrouble);
  }

  async function text(address, options = {}) {
    const answer = await fetch(address, { ...options, headers: HX });
    const body = await answer.text();
    if (!answer.ok) {
      const trouble = new Error(body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim());
      trouble.status = answer.status;
      throw trouble;
    }
    return body;
  }

  function ahead() {
    for (let n = at; n <= at + AHEAD && n < places.length; n += 1) {
      if (fetched.has(n)) continue;
      const coming = text(places[n]);
      coming.catch(() => fetched.delete(n));
      fetched.set(n, coming);
    }
  }

  function put(html) {
    stage.innerHTML = html;
    stage.querySelector("[data-first]")?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  async function show(n, again = false) {
    if (n >= places.length) {
      // the walk ends here: the page knows what comes next
      await sending;
      location.assign(stage.dataset.more);
      return;
    }
    at = Math.max(0, n);
    if (again) fetched.delete(at);
    ahead();
    if (position) position.textContent = String(at + 1);
    try {
      put(await fetched.get(at));
    } catch (error) {
      announce(`This cell cannot be shown: ${error.message}`, true);
    }
  }

  async function post(address, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await text(address, { method: "POST", body });
      } catch (error) {
        if (error.status && error.status < 500) throw error;
        announce("The server does not answer; the decision is kept here and sent again.", true);
        await new Promise((wait) => setTimeout(wait, Math.min(8000, 500 * 2 ** attempt)));
      }
    }
  }

  function send(address, body) {
    unsent += 1;
    sending = sending.then(async () => {
      try {
        return await post(address, body);
      } finally {
        unsent -= 1;
      }
    });
    const answer = sending;
    sending = sending.catch(() => {});
    return answer;
  }

  function take(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    return holder.content.querySelector("[data-number]");
  }

  // kappa and confusion follow a moment later, so that no decision waits for them
  function compare() {
    clearTimeout(comparing);
    comparing = setTimeout(async () => {
      try {
        agreement.innerHTML = await text(stage.dataset.agreement);
      } catch {
        comparing = 0;
      }
    }, COMPARE_MILLISECONDS);
  }

  function remember(note, n, item) {
    const { number } = note.dataset;
    made.push({ number, at: n });
    const line = document.createElement("li");
    line.dataset.made = number;
    line.append(...note.querySelector("[data-line]").cloneNode(true).childNodes);
    line.querySelector("[data-item]").textContent = item;
    recent.prepend(line);
    while (recent.children.length > 8) recent.lastElementChild.remove();
  }

  // what is typed while an answer is under way counts after it; a decision only where its cell
  // was on the screen already
  function inTurn(act) {
    const seen = now();
    acting = acting.catch(() => {}).then(() => act(seen));
  }

  async function decide(rating, article) {
    if (article !== now() || article?.dataset.state !== "open") return;
    const here = at;
    const item = article.querySelector(".item").textContent;
    const body = new URLSearchParams(new FormData(form()));
    body.set("rating", rating);
    const isBlind = article.dataset.hidden === "1";
    article.dataset.state = "sent";
    const answer = send(form().getAttribute("action"), body);
    const arrived = arrive(answer, article, here, item, isBlind);
    await (isBlind ? arrived : show(here + 1));
  }

  async function arrive(answer, article, here, item, isBlind) {
    try {
      const note = take(await answer);
      remember(note, here, item);
      compare();
      announce(note.dataset.said);
      if (isBlind) {
        article.dataset.state = "decided";
        article.querySelector("[data-answer]").replaceChildren(note);
        article.querySelector("[data-scale]").hidden = true;
        article.querySelector("[data-next]")?.focus();
      }
    } catch (error) {
      announce(`Not saved: ${error.message}`, true);
      await show(here, true);
    }
  }

  async function undo() {
    await sending;
    const last = made.pop();
    if (!last) {
      announce("There is nothing to undo on this page; see the history.");
      return;
    }
    const body = new URLSearchParams({ number: last.number });
    try {
      await send(stage.dataset.undo, body);
      compare();
      recent.querySelector(`[data-made="${last.number}"]`)?.remove();
      announce("Taken back.");
      await show(last.at, true);
    } catch (error) {
      announce(`Not taken back: ${error.message}`, true);
    }
  }

  const next = () => show(at + 1);
  const back = () => show(at - 1, true);
  const reason = () => form()?.querySelector("[name=reason]")?.focus();
  const whole = () => stage.querySelector("[data-whole]")?.click();

  function confirm(seen) {
    const { automatic, state } = seen?.dataset ?? {};
    if (state === "decided") return next();
    if (automatic) return decide(automatic, seen);
    return announce("There is no grade to confirm here: choose a rating, or skip with s.");
  }

  const keys = {
    Enter: confirm,
    s: next,
    ArrowRight: next,
    ArrowLeft: back,
    u: undo,
  };
  // these wait for nothing: what is typed after `r` is text
  const atOnce = {
    r: reason,
    w: whole,
    b: () => document.getElementById("blind")?.click(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") || localStorage.getItem("exampp.keys") === "off") return;
    if (event.target.matches("input[type=text], textarea, select")) {
      if (event.key === "Escape" || event.key === "Enter") {
        event.preventDefault();
        event.target.blur();
      }
      return;
    }
    if (event.key === "Enter" && event.target.matches("a, summary, button")) {
      if (!event.target.matches("[data-next]")) return;
    }
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
  stage.addEventListener("click", async (event) => {
    if (event.target.closest("[data-next]")) {
      event.preventDefault();
      inTurn(next);
    }
    const link = event.target.closest("[data-whole]");
    if (link) {
      event.preventDefault();
      put(await text(link.getAttribute("href")));
    }
  });
  document.getElementById("undo")?.addEventListener("click", () => inTurn(undo));
  window.addEventListener("beforeunload", (event) => {
    if (unsent) event.preventDefault();
  });

  fetched.set(0, Promise.resolve(stage.innerHTML));
  ahead();
  stage.querySelector("[data-first]")?.focus({ preventScroll: true });
})();
