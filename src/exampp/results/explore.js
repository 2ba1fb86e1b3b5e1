"use strict";
// The page of an interactive report: tables that sort and filter, quotes, and decisions to save.
// All texts are put in as text, never as markup.
(async () => {
  const section = document.getElementById("explore");
  const state = document.getElementById("explore-state");
  const packed = document.getElementById("details").textContent;

  let data;
  try {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    data = await new Response(stream).json();
  } catch {
    state.textContent = "This browser cannot unpack the details. Open the file in a current Firefox, Chrome, Edge or Safari. All tables of this page work.";
    return;
  }

  const make = (name, options = {}, ...children) => {
    const { on = {}, aria = {}, ...rest } = options;
    const node = Object.assign(document.createElement(name), rest);
    for (const [event, call] of Object.entries(on)) node.addEventListener(event, call);
    for (const [key, value] of Object.entries(aria)) node.setAttribute(`aria-${key}`, value);
    node.append(...children);
    return node;
  };
  const name = (text) => make("bdi", {}, text);
  const figure = (value) => (value === null || value === undefined ? "\u2013" : value.toFixed(3));
  const [lowest, highest] = data.scale;
  const counts = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
  // words that a text must have; * is any text and ? any character, as in a filter of the pages
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean).map((word) =>
    new RegExp(word.replace(/[\\^$.|+()[\]{}]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, "."), "s"));
  const groupOf = (text) => text.match(/^.*[-_.:/+ ](?=.)/s)?.[0] ?? "";

  // ---- decisions, kept in the browser until they are saved ---------------------------------------

  const key = `exampp-report-${data.grader}-${packed.length}-${packed.slice(-40, -20)}`;
  let decided = { author: "", cells: {}, items: {} };
  try {
    decided = JSON.parse(localStorage.getItem(key)) || decided;
  } catch { /* storage may be off: decisions then last until the page closes */ }
  let saved = true;
  const now = () => `${new Date().toISOString().slice(0, 19)}+00:00`;
  const count = () => Object.keys(decided.cells).length + Object.keys(decided.items).length;
  const remember = () => {
    saved = count() === 0;
    try { localStorage.setItem(key, JSON.stringify(decided)); } catch { /* as above */ }
    showCount();
  };
  addEventListener("beforeunload", (event) => { if (!saved) event.preventDefault(); });

  const itemOf = (place) => {
    const query = data.queries[place[0]], item = query.items[place[1]];
    return { query: query.id, item: item[0], item_text: item[1] };
  };
  const save = () => {
    decided.author = author.value.trim();
    if (!decided.author) {
      trouble.textContent = "Enter your name: every decision has an author.";
      author.focus();
      return;
    }
    const file = {
      format: "exampp report decisions 1",
      author: decided.author, grader: data.grader, bank: data.bank,
      decisions: Object.entries(decided.cells).map(([place, one]) => {
        const at = place.split(" ").map(Number);
        const text = data.texts[data.queries[at[0]].passages[at[2]]];
        return { ...itemOf(at), passage: text[1], passage_hash: text[4], rating: one.rating, reason: one.reason || "", at: one.at };
      }),
      retire: Object.entries(decided.items).map(([place, one]) => ({ ...itemOf(place.split(" ").map(Number)), reason: one.reason || "", at: one.at })),
    };
    const address = URL.createObjectURL(new Blob([`${JSON.stringify(file)}\n`], { type: "application/json" }));
    make("a", { href: address, download: "decisions.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    remember();
    saved = true;
    trouble.textContent = `Saved ${counts(count(), "decision")} in decisions.json. Send it back: exampp import COLLECTION decisions.json`;
  };

  // ---- tables that sort and filter ---------------------------------------------------------------

  // `columns` are [heading, value of a row, cell of a row, is a figure]; `first` tells which rows stay on top
  const table = (caption, rows, columns, describe, first = () => false) => {
    const body = make("tbody");
    const lines = rows.map((row) => ({ row, node: make("tr"), found: describe(row).toLowerCase() }));
    let by = -1, down = true;
    const fill = (line) => {
      line.node.classList.toggle("is-pinned", first(line.row));
      line.node.replaceChildren(...columns.map(([, , cell, number], at) =>
      make(at ? "td" : "th", at ? { className: number ? "number" : "strip" } : { scope: "row" }, cell(line.row))));
    };
    const sort = () => {
      const value = columns[by][1];
      const sign = down ? -1 : 1;
      lines.sort((a, b) => {
        const lead = first(b.row) - first(a.row);
        if (lead) return lead;
        const [x, y] = [value(a.row), value(b.row)];
        if (x === null || y === null || x === undefined || y === undefined) return (x === null || x === undefined) - (y === null || y === undefined);
        return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
      });
      body.append(...lines.map((line) => line.node));
      heads.forEach((head, at) => (at === by ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    };
    const choose = (at) => {
      down = at === by ? !down : Boolean(columns[at][3]);
      by = at;
      sort();
    };
    const heads = columns.map(([heading, , , number], at) =>
      make("th", { scope: "col", className: number ? "number" : "" },
        make("button", { type: "button", className: "plain", on: { click: () => choose(at) } }, heading)));
    lines.forEach(fill);
    body.append(...lines.map((line) => line.node));
    const node = make("div", { className: "rows", tabIndex: 0, role: "group", aria: { label: caption } },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    return {
      node, choose,
      // show the rows in which all words occur, or those that `choice` selects among them; return them
      filter: (text, choice = (some) => some) => {
        const wanted = words(text);
        const found = lines.filter((line) => wanted.every((word) => word.test(line.found))).map((line) => line.row);
        const shown = new Set([...rows.filter(first), ...choice(found)]);
        for (const line of lines) line.node.hidden = !shown.has(line.row);
        return shown;
      },
      refresh: () => { lines.forEach(fill); sort(); },
    };
  };

  // ---- systems and queries -----------------------------------------------------------------------

  let measure = 0, chosen = null;
  const places = data.systems.map((_, at) => at);
  const counted = new Map();
  for (const system of data.systems) counted.set(groupOf(system), (counted.get(groupOf(system)) ?? 0) + 1);
  const groups = [...counted].filter(([one, some]) => one && some > 1).sort();
  const address = new URLSearchParams(location.search);
  const pinned = new Set(places.filter((at) => address.getAll("pin").includes(data.systems[at])));
  let shownSystems = new Set(places);
  const pin = (system) => {
    if (!pinned.delete(system)) pinned.add(system);
    systems.refresh();
    filterSystems();
    [...systemsBox.querySelectorAll(".pin")].find((one) => one.dataset.system === String(system)).focus();
  };
  // systems, as the choice of a group leaves them; `best` is the best system of each
  const inGroup = (some) => {
    if (group.value !== "best") return some.filter((at) => !group.value || groupOf(data.systems[at]) === group.value);
    const seen = new Set(), known = new Set(groups.map(([one]) => one));
    const score = (at) => data.means[measure][at] ?? -Infinity;
    return [...some].sort((a, b) => score(b) - score(a)).filter((at) => {
      const of = groupOf(data.systems[at]), isNew = !known.has(of) || !seen.has(of);
      seen.add(of);
      return isNew;
    });
  };
  const systemsHead = make("h3", {}), queriesHead = make("h3", {});
  const systemsBox = make("div"), queriesBox = make("div"), queryBox = make("div", { id: "explore-query" });
  const hover = make("p", { id: "explore-hover" });
  let systems, queries;

  const pick = (system) => {
    chosen = chosen === system ? null : system;
    systems.refresh();
    drawQueries();
    if (open !== null) drawQuery(false);
  };
  const strip = (row) => {
    const scores = data.scores[measure][row];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 176 24");
    svg.setAttribute("aria-hidden", "true");
    const draw = (value, system) => {
      if (value === null || value === undefined) return;
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      dot.setAttribute("cx", String(8 + 160 * Math.min(1, Math.max(0, value / top))));
      dot.setAttribute("cy", "12");
      dot.setAttribute("r", system === chosen ? "6" : "5");
      dot.dataset.system = system;
      dot.dataset.row = row;
      if (system === chosen) dot.classList.add("is-chosen");
      svg.append(dot);
    };
    scores.forEach((value, system) => { if (shownSystems.has(system)) draw(value, system); });
    if (chosen !== null) draw(scores[chosen], chosen);
    return svg;
  };
  let top = 1;
  const mean = (scores) => {
    const known = scores.filter((value) => value !== null && value !== undefined);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  };
  const textOf = ([id, at]) => {
    const query = at === null || at === undefined ? null : data.queries[at];
    if (!query) return id;
    return query.id === id ? query.text || id : `${query.text || query.id} (${id.slice(query.id.length + 1)})`;
  };

  const systemCell = (at) => {
    const pinner = make("button", { type: "button", className: "plain pin", title: "Pinned systems stay on top",
      aria: { label: `${pinned.has(at) ? "Unpin" : "Pin"} ${data.systems[at]}` }, on: { click: () => pin(at) } }, pinned.has(at) ? "Unpin" : "Pin");
    pinner.dataset.system = at;
    const cell = make("span", {}, make("button", { type: "button", className: "plain", aria: { pressed: String(at === chosen) }, on: { click: () => pick(at) } }, name(data.systems[at])));
    if (places.length > 10) cell.append(" ", pinner);
    return cell;
  };
  const drawSystems = () => {
    const shown = data.measures.map((_, at) => at).filter((at) => at < 6 || at === measure);
    systems = table("Systems", places, [
      ["system", (at) => data.systems[at], (at) => systemCell(at), false],
      ...shown.map((one) => [data.measures[one], (at) => data.means[one][at], (at) => figure(data.means[one][at]), true]),
    ], (at) => data.systems[at], (at) => pinned.has(at));
    systems.choose(1 + shown.indexOf(measure));
    systemsBox.replaceChildren(systems.node);
  };
  const drawQueries = () => {
    const scores = data.scores[measure];
    top = Math.max(1e-9, ...scores.flat().filter((value) => value !== null));
    if (top <= 1) top = 1;
    queries = table("Queries", data.rows.map((_, at) => at), [
      ["query", (at) => textOf(data.rows[at]), (at) => make("button", { type: "button", className: "plain", disabled: data.rows[at][1] === null, on: { click: () => { open = at; drawQuery(true); } } }, name(textOf(data.rows[at]))), false],
      ["spread", (at) => Math.max(...scores[at].map((value) => value ?? -1)) - Math.min(...scores[at].map((value) => value ?? 2)), strip, false],
      ["mean", (at) => mean(scores[at]), (at) => figure(mean(scores[at])), true],
      ...(chosen === null ? [] : [[data.systems[chosen], (at) => scores[at][chosen], (at) => figure(scores[at][chosen]), true]]),
    ], (at) => `${data.rows[at][0]} ${textOf(data.rows[at])}`);
    queries.choose(2);
    queries.choose(2);
    queriesBox.replaceChildren(queries.node, hover);
    filterQueries();
  };
  queriesBox.addEventListener("mouseover", (event) => {
    const system = event.target.dataset?.system;
    if (system === undefined) return;
    for (const dot of queriesBox.querySelectorAll("circle")) dot.classList.toggle("is-near", dot.dataset.system === system);
    const row = Number(event.target.dataset.row);
    hover.textContent = `${data.systems[system]}: ${figure(data.scores[measure][row][system])} on \u201c${textOf(data.rows[row])}\u201d`;
  });
  queriesBox.addEventListener("click", (event) => {
    const system = event.target.dataset?.system;
    if (system !== undefined) pick(Number(system));
  });

  // ---- one query: items, and the passages that answer them ---------------------------------------

  let open = null, only = true;
  const opened = new Set();

  const judge = (place, passage) => {
    const cell = [...place, passage].join(" ");
    const group = make("div", { className: "judge", role: "group", aria: { label: "Your decision" } });
    const draw = () => {
      const own = decided.cells[cell];
      const buttons = [];
      for (let rating = lowest; rating <= highest; rating += 1) {
        buttons.push(make("button", {
          type: "button", aria: { pressed: String(own?.rating === rating) },
          on: { click: () => {
            if (decided.cells[cell]?.rating === rating) delete decided.cells[cell];
            else decided.cells[cell] = { rating, at: now(), reason: decided.cells[cell]?.reason || "" };
            remember();
            draw();
            group.querySelectorAll("button")[rating - lowest].focus();
          } },
        }, highest <= 1 ? ["no", "yes"][rating] ?? rating : String(rating)));
      }
      const reason = make("input", { type: "text", maxLength: 2000, placeholder: "Reason (optional)", value: own?.reason || "", aria: { label: "Reason" },
        on: { change: () => { decided.cells[cell].reason = reason.value; remember(); } } });
      group.replaceChildren(make("span", { className: "about" }, "Your decision"), ...buttons, ...(own ? [reason] : []));
    };
    draw();
    return group;
  };
  const marked = (text, quote, cut) => {
    if (!quote) return [text];
    return [cut ? "" : text.slice(0, quote[2]), make("mark", { className: quote[4] ? "guess" : "" }, text.slice(quote[2], quote[3])), cut ? "" : text.slice(quote[3])];
  };
  const answer = (query, place, passage, returned) => {
    const [, id, title, text] = data.texts[query.passages[passage]];
    const rating = query.ratings[passage][place[1]];
    const quote = query.quotes.find((one) => one[0] === passage && one[1] === place[1]);
    const by = query.decided.find((one) => one[0] === passage && one[1] === place[1]);
    const where = returned.map(([system, rank]) => `${data.systems[system]} (rank ${rank})`);
    const start = text.length > 240 ? `${text.slice(0, 240)}\u2026` : text;
    return make("div", { className: `answer${rating !== null && rating >= data.least ? " covers" : ""}` },
      make("p", {}, make("span", { className: "grade" }, rating === null ? "\u2013" : String(rating)), " ",
        make("q", { dir: "auto" }, ...(quote ? marked(text, quote, true) : [start]))),
      make("p", { className: "about", title: where.join("\n") },
        "Passage ", name(id), by ? `, decided by ${by[2].join(", ")}${by[3] ? " (disputed)" : ""}` : "",
        ". Returned by ", ...where.slice(0, 3).flatMap((one, at) => [at ? ", " : "", name(one)]), where.length > 3 ? ` and ${where.length - 3} more.` : "."),
      make("details", {}, make("summary", {}, "Whole passage"),
        make("div", { className: "whole", dir: "auto" }, ...(title ? [make("strong", {}, title), "\n"] : []), ...marked(text, quote, false), query.cut.includes(passage) ? "\u2026 (cut)" : "")),
      ...(data.decide && !query.cut.includes(passage) ? [judge(place, passage)] : []));
  };
  const drawItem = (query, place, returned) => {
    const item = query.items[place[1]], mark = place.join(" ");
    const covers = (passage) => (query.ratings[passage][place[1]] ?? lowest - 1);
    const answering = query.passages.map((_, passage) => passage).filter((passage) => returned[passage].length)
      .sort((a, b) => covers(b) - covers(a) || returned[b].length - returned[a].length);
    const covered = answering.filter((passage) => covers(passage) >= data.least).length;
    const box = make("div");
    const node = make("details", { className: "item" },
      make("summary", {}, name(item[1] || item[0]), " ", make("span", { className: "count" }, `answered by ${covered} of ${counts(answering.length, "passage")}`)), box);
    const retire = make("button", { type: "button", on: { click: () => {
      if (decided.items[mark]) delete decided.items[mark];
      else decided.items[mark] = { at: now() };
      remember();
      drawRetired();
    } } });
    const drawRetired = () => {
      const is = Boolean(decided.items[mark]);
      node.classList.toggle("is-retired", is);
      retire.textContent = is ? "Keep this item" : "Retire this item";
      retire.setAttribute("aria-pressed", String(is));
    };
    drawRetired();
    let shown = 0;
    const more = make("button", { type: "button", on: { click: () => show(20) } });
    const show = (most) => {
      const next = answering.slice(shown, shown + most);
      more.before(...next.map((passage) => answer(query, place, passage, returned[passage])));
      shown += next.length;
      more.hidden = shown >= answering.length;
      more.textContent = `Show more passages (${answering.length - shown})`;
    };
    const fill = () => {
      if (shown || box.childElementCount) return;
      box.append(more, ...(data.decide ? [make("p", {}, retire)] : []));
      if (!answering.length) more.before(make("p", { className: "about" }, "No passage of this query is returned here."));
      show(10);
    };
    node.addEventListener("toggle", () => {
      if (node.open) { opened.add(mark); fill(); } else opened.delete(mark);
    });
    if (opened.has(mark)) { fill(); node.open = true; }
    return node;
  };
  const drawQuery = (moves) => {
    const at = data.rows[open][1], query = data.queries[at];
    const returned = query.passages.map(() => []);
    for (const [system, ranks] of query.rankings) {
      if (chosen !== null && only && system !== chosen) continue;
      for (const [passage, rank] of ranks) returned[passage].push([system, rank]);
    }
    for (const some of returned) some.sort((a, b) => a[1] - b[1]);
    const head = make("h3", { tabIndex: -1 }, name(query.text || query.id));
    const box = make("input", { type: "checkbox", checked: only, on: { change: () => { only = box.checked; drawQuery(false); } } });
    queryBox.replaceChildren(head,
      make("p", { className: "about" }, `Items of this query, and the passages at ranks 1 to ${data.depth} that answer them. The mark is the answer of the grader; a dotted mark is the closest sentence.`),
      ...(chosen === null ? [] : [make("label", { className: "check" }, box, "Only passages of ", name(data.systems[chosen]))]),
      ...query.items.map((_, item) => drawItem(query, [at, item], returned)));
    if (moves) {
      head.focus({ preventScroll: true });
      head.scrollIntoView({ block: "start" });
    }
  };

  // ---- tools -------------------------------------------------------------------------------------

  const field = (label, node) => make("label", {}, label, node);
  const measures = make("select", { on: { change: () => { measure = Number(measures.value); drawSystems(); filterSystems(); drawQueries(); } } },
    ...data.measures.map((one, at) => make("option", { value: at }, one)));
  const findSystems = make("input", { type: "search", value: address.get("find") ?? "", on: { input: () => filterSystems() } });
  const group = make("select", { on: { change: () => filterSystems() } }, make("option", { value: "" }, "all"), make("option", { value: "best" }, "best of each group"),
    ...groups.map(([one, some]) => make("option", { value: one }, `${one}* (${some})`)));
  group.value = address.get("group") ?? "";
  if (group.selectedIndex < 0) group.value = "";
  const findQueries = make("input", { type: "search", on: { input: () => filterQueries() } });
  const filterSystems = () => {
    const before = shownSystems;
    shownSystems = systems.filter(findSystems.value, inGroup);
    systemsHead.textContent = `Systems (${shownSystems.size} of ${data.systems.length})`;
    if (before.size !== shownSystems.size || [...before].some((at) => !shownSystems.has(at))) queries?.refresh();
    const kept = new URLSearchParams(Object.entries({ find: findSystems.value, group: group.value }).filter(([, value]) => value));
    for (const at of pinned) kept.append("pin", data.systems[at]);
    // some browsers refuse to change the address of a file
    try { history.replaceState(null, "", `${location.pathname}${String(kept) && `?${kept}`}${location.hash}`); } catch { /* it stays */ }
  };
  const filterQueries = () => { queriesHead.textContent = `Queries (${queries.filter(findQueries.value).size} of ${data.rows.length})`; };
  const author = make("input", { type: "text", maxLength: 200, autocomplete: "name", value: decided.author, on: { change: () => { decided.author = author.value.trim(); remember(); } } });
  const saver = make("button", { type: "button", id: "explore-save", on: { click: save } });
  const trouble = make("p", { role: "status", className: "about" });
  const showCount = () => {
    saver.disabled = !count();
    saver.textContent = count() ? `Save the decisions (${count()})` : "Save the decisions";
  };
  saved = count() === 0;
  showCount();
  state.textContent = data.decide
    ? "Select a system to compare its scores. Select a query to see its items, and the passages that answer them. Your decisions stay in this browser until you save them as a file and send it back."
    : "Select a system to compare its scores. Select a query to see its items, and the passages that answer them.";
  drawSystems();
  drawQueries();
  filterSystems();
  section.append(
    make("div", { id: "explore-tools" }, field("Measure", measures), field("Find systems", findSystems), ...(groups.length ? [field("Group", group)] : []), field("Find queries", findQueries),
      ...(data.decide ? [field("Your name", author), saver] : [])),
    trouble, systemsHead, systemsBox, queriesHead, queriesBox, queryBox);
  section.dataset.ready = "true";
})();
