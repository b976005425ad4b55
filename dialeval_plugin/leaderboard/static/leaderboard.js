(() => {
  "use strict";
  const { address, all, draw, fixed, make, one } = page;

  const data = JSON.parse(one("#data").textContent);
  const cases = one("#case-data") && JSON.parse(one("#case-data").textContent);
  const evaluators = data.evaluators;
  const columns = data.columns.map((column, place) => ({ ...column, place }));
  const main = data.coefficients[0]?.id ?? "";
  const label = (column) => {
    const { name } = data.sets[column.set];
    return columns.filter((other) => other.set === column.set).length > 1 ? `${name}, ${column.quality.replaceAll("_", " ")}` : name;
  };

  // What is shown: this and nothing else is in the address.
  const initial = () => ({ coefficient: main, sets: null, filters: {}, evaluator: "", sort: "mean", ascending: null, pair: null, intervals: true });
  let state = initial();
  const higher = () => data.coefficients.find(({ id }) => id === state.coefficient)?.higher ?? true;
  const chosen = () => state.sets ?? data.common[state.coefficient] ?? [];

  // Means, as dialeval_plugin.statistics.estimates has them: squared widths of sets add up, widths of one set's qualities are averaged,
  // and a single figure keeps its own interval.
  const average = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  function meanOf(figures, half) {
    if (!figures.length || figures.some((figure) => !figure)) return null;
    const value = average(figures.map(([first]) => first));
    if (figures.some(({ length }) => length < 3)) return [value];
    if (figures.length === 1) return figures[0].slice(0, 3);
    const width = half(figures.map(([, low, high]) => high - low));
    return [value, value - width, value + width];
  }
  const withinSet = (figures) => meanOf(figures, (widths) => average(widths) / 2);
  const overSets = (figures) => meanOf(figures, (widths) => Math.hypot(...widths) / (2 * widths.length));

  const columnsOf = (set, coefficient = state.coefficient) => columns.filter((column) => column.set === set && data.values[coefficient]?.some((row) => row[column.place]));
  function setMean(i, set, coefficient = state.coefficient) {
    const within = columnsOf(set, coefficient);
    const isPartial = within.some(({ place }) => data.lacks[coefficient][i][place] === "part of the set");
    return isPartial ? null : withinSet(within.map(({ place }) => data.values[coefficient][i][place]));
  }
  const isRough = (i, sets) => sets.flatMap((set) => columnsOf(set)).some(({ place }) => data.values[state.coefficient][i][place][3]);

  function lacking(i, sets) {
    const found = new Map();
    for (const { set, place } of sets.flatMap((set) => columnsOf(set))) {
      const why = data.lacks[state.coefficient][i][place];
      if (why) found.set(why, (found.get(why) ?? new Set()).add(data.sets[set].name));
    }
    return [...found].map(([why, names]) => `${why}: ${[...names].join(", ")}`).join("; ");
  }

  function peopleOn(sets) {
    const rows = (data.people[state.coefficient] ?? []).map((values) => {
      const known = sets.map((set) => columnsOf(set).map(({ place }) => values[place]).filter((value) => value !== null)).filter(({ length }) => length);
      return { mean: known.length ? average(known.map(average)) : null, n: known.length };
    });
    return rows.filter(({ mean }) => mean !== null);
  }

  // Scale and ticks as dialeval_plugin.pages.charts has them.
  function scaleOf(ends) {
    let [low, high] = [Math.min(...ends), Math.max(...ends)];
    if (high <= low) [low, high] = [low - 0.5, high + 0.5];
    const room = 0.04 * (high - low);
    [low, high] = [low - room, high + room];
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const ticks = [];
    for (let number = Math.ceil(low / step - 1e-9); number <= Math.floor(high / step + 1e-9); number += 1) ticks.push(step * number);
    return { at: (value) => `${((100 * (value - low)) / (high - low)).toFixed(1)}%`, share: (width) => (100 * width) / (high - low), ticks };
  }
  function drawAxis(svg, { at, ticks }, band) {
    const named = band.length ? [[average(band), "people", 10]] : [];
    svg.replaceChildren(...[...named, ...ticks.map((tick) => [tick, String(Number(tick.toPrecision(6))), 22])].map(([value, words, y]) => {
      const place = parseFloat(at(value));
      // A number at an end would stand over the border of its table.
      const text = draw("text", { x: at(value), y, "text-anchor": place > 95 ? "end" : place < 5 ? "start" : "middle" });
      text.textContent = words;
      return text;
    }));
  }
  function drawRow(svg, figure, { at, share, ticks }, band, rough) {
    const parts = ticks.map((tick) => draw("line", { class: Math.abs(tick) < 1e-9 ? "zero" : "grid", x1: at(tick), x2: at(tick), y2: "100%" }));
    if (band.length) {
      const [low, high] = [Math.min(...band), Math.max(...band)];
      parts.unshift(draw("rect", { class: "people", x: at(low), width: `${Math.max(share(high - low), 0.3).toFixed(1)}%`, height: "100%" }));
    }
    if (figure.length > 2) parts.push(draw("line", { class: rough ? "interval rough" : "interval", x1: at(figure[1]), x2: at(figure[2]), y1: "50%", y2: "50%" }));
    parts.push(draw("circle", { class: "estimate", cx: at(figure[0]), cy: "50%", r: 4 }));
    svg.replaceChildren(...parts);
  }
  const three = (value) => fixed(value, 3);
  const signed = (value) => (value > 0 ? "+" : "") + three(value);
  const bounds = (figure) => (figure.length > 2 ? `${fixed(figure[1], 2)} to ${fixed(figure[2], 2)}${figure[3] ? ", rough" : ""}` : "");

  const isWanted = (i) => evaluators[i].name.toLowerCase().includes(state.evaluator.trim().toLowerCase())
    && Object.entries(state.filters).every(([name, value]) => !value || evaluators[i][name] === value);

  const rankingRows = all("#ranking tbody tr");
  const unrankedRows = all("#unranked tbody tr");
  const board = one("#board");
  const headers = all("thead th", board);
  const boardRows = all("tr[data-i]", board);
  const references = all(".references tr", board);
  const rowOf = (rows, i) => rows.find((row) => row.dataset.i === String(i));

  function update() {
    const sets = chosen();
    const means = evaluators.map((_, i) => overSets(sets.map((set) => setMean(i, set))));
    const better = (a, b) => (higher() ? b - a : a - b);
    const order = evaluators.map((_, i) => i).filter((i) => means[i]).sort((a, b) => better(means[a][0], means[b][0]) || evaluators[a].name.localeCompare(evaluators[b].name));
    showRanking(sets, means, order.filter(isWanted));
    showUnranked(sets, evaluators.map((_, i) => i).filter((i) => !means[i] && isWanted(i)));
    showBoard(sets, means, order);
    showPair(sets);
    one("#intervals").checked = state.intervals;
    board.classList.toggle("no-intervals", !state.intervals);
    for (const item of all(".entry[data-i], figure[data-i]")) item.hidden = !isWanted(Number(item.dataset.i));
    one("#chosen").textContent = `${sets.length} of ${data.sets.length}${state.sets ? "" : ", common"}`;
    for (const box of all("input[name=set]")) box.checked = sets.includes(Number(box.value));
    one("#coefficient").value = state.coefficient;
    one("#evaluator").value = state.evaluator;
    for (const select of all("[data-filter]")) select.value = state.filters[select.dataset.filter] ?? "";
  }

  function showRanking(sets, means, order) {
    const people = peopleOn(sets);
    const band = people.map(({ mean }) => mean);
    const scale = scaleOf([0, ...band, ...order.flatMap((i) => means[i])]);
    const named = [...one("#coefficient").options].find(({ value }) => value === state.coefficient)?.textContent;
    const names = sets.map((set) => data.sets[set].name).join(", ");
    const by = sets.length === 1 ? `${named} on one set` : `the mean ${named} over the same ${sets.length} sets`;
    one("#count").textContent = order.length
      ? `${order.length} of ${evaluators.length} evaluators, by ${by}: ${names}. Lines are 95 % intervals.`
      : "No evaluator that is shown has the whole of the sets that count, so none is ranked.";
    const n = Math.min(...people.map((row) => row.n));
    one("#band-note").replaceChildren(...(band.length && order.length
      ? [make("span", null, "key"), ` people among themselves: from one against the others to half against the rest${n < sets.length ? `, on ${n} of these sets` : ""}.`]
      : []));
    one("#ranking").hidden = !order.length;
    drawAxis(one("#ranking .axis"), scale, band);
    for (const row of rankingRows) row.hidden = !order.includes(Number(row.dataset.i));
    order.forEach((i, place) => {
      const row = rowOf(rankingRows, i);
      const rough = isRough(i, sets);
      one(".order", row).textContent = place + 1;
      one(".mean", row).replaceChildren(make("b", three(means[i][0])), " ", make("small", bounds(means[i]) + (rough && means[i].length > 2 ? ", rough" : "")));
      drawRow(one("svg", row), means[i], scale, band, rough);
    });
    one("#ranking tbody").append(...order.map((i) => rowOf(rankingRows, i)));
  }

  function showUnranked(sets, found) {
    one("#unranked").hidden = !found.length;
    for (const row of unrankedRows) {
      row.hidden = !found.includes(Number(row.dataset.i));
      one(".lacks", row).textContent = lacking(Number(row.dataset.i), sets);
    }
  }

  function showBoard(sets, means, order) {
    const which = data.coefficients.findIndex(({ id }) => id === state.coefficient);
    headers.forEach((header, place) => {
      if (place < 2) return;
      const isHidden = !sets.includes(columns[place - 2].set) || !columnsOf(columns[place - 2].set).includes(columns[place - 2]);
      header.hidden = isHidden;
      for (const row of [...boardRows, ...references]) row.cells[place].hidden = isHidden;
    });
    for (const row of [...boardRows, ...references]) {
      for (const cell of [...row.cells].slice(2)) [...cell.children].forEach((figure, place) => (figure.hidden = place !== which));
    }
    for (const row of references) row.hidden = ![...row.cells].slice(2).some((cell) => !cell.hidden && cell.children[which]?.textContent);
    for (const row of boardRows) {
      const i = Number(row.dataset.i);
      row.hidden = !isWanted(i);
      one(".mean", row).replaceChildren(...(means[i] ? [make("b", three(means[i][0]))] : []));
    }
    const direction = (state.ascending ?? (state.sort === "name" || !higher())) ? 1 : -1;
    const key = (i) => {
      if (state.sort === "name") return evaluators[i].name;
      return state.sort === "mean" ? means[i]?.[0] ?? null : data.values[state.coefficient]?.[i][state.sort]?.[0] ?? null;
    };
    for (const [selector, isRanked] of [[".ranked", true], [".others", false]]) {
      const keyed = evaluators.map((_, i) => i).filter((i) => Boolean(means[i]) === isRanked).map((i) => [key(i), i]);
      // What is missing stands last in either direction.
      keyed.sort(([a, i], [b, j]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return direction * (typeof a === "string" ? a.localeCompare(b) : a - b) || order.indexOf(i) - order.indexOf(j);
      });
      one(selector, board).append(...keyed.map(([, i]) => rowOf(boardRows, i)));
      if (!isRanked) one(".head", board).hidden = !keyed.some(([, i]) => isWanted(i));
    }
    for (const header of headers) {
      header.setAttribute("aria-sort", header.dataset.key === String(state.sort) ? (direction === 1 ? "ascending" : "descending") : "none");
    }
    measure();
  }

  function showPair(sets) {
    const [a, b] = pair();
    for (const [id, i] of [["#first", a], ["#second", b]]) one(id).value = String(i);
    const body = one("#differences tbody");
    const names = [evaluators[a]?.name ?? "", evaluators[b]?.name ?? ""];
    all("#differences thead .number").slice(0, 2).forEach((cell, place) => {
      cell.replaceChildren(make("span", names[place], "wide"), make("span", place ? "second" : "first", "narrow"));
    });
    const known = columns.filter(({ set }) => sets.includes(set)).map((column) => {
      const found = data.differences[column.place].find(([i, j]) => (i === a && j === b) || (i === b && j === a));
      const ends = found?.slice(2);
      return [column, ends && (found[0] === a ? ends : [-ends[0], ...(ends.length > 2 ? [-ends[2], -ends[1], ...ends.slice(3)] : [])])];
    });
    const bySet = sets.map((set) => withinSet(known.filter(([column]) => column.set === set).map(([, figure]) => figure)));
    const mean = sets.length > 1 ? overSets(bySet) : null;
    const figures = known.map(([, figure]) => figure).filter(Boolean);
    const scale = scaleOf([0, ...figures.flatMap((figure) => figure.slice(0, 3)), ...(mean ?? [])]);
    drawAxis(one("#differences .axis"), scale, []);
    if (mean?.length > 2 && figures.some((figure) => figure[3])) mean.push(1);
    const row = (name, values, figure, why) => {
      const plot = make("td", null, "plot");
      if (figure) {
        const svg = draw("svg", { width: "100%", height: "100%", "aria-hidden": "true" });
        drawRow(svg, figure, scale, [], figure[3]);
        plot.append(svg);
      }
      const head = make("th", name);
      head.scope = "row";
      const tells = figure?.length > 2 && (figure[1] > 0 || figure[2] < 0);
      const difference = figure ? make("td", null, "number", make(tells ? "b" : "span", signed(figure[0])), " ", make("small", bounds(figure))) : make("td", why, "unknown number");
      difference.classList.add("difference");
      return make("tr", null, "", head, ...values.map((value) => make("td", value ? three(value[0]) : "–", "number")), difference, plot);
    };
    const ofColumn = (i, column) => (evaluators[i] ? data.values[main]?.[i][column.place] : 0);
    const nothing = a === b ? "the same evaluator" : "no rows in common";
    const why = (column) => [a, b].map((i) => evaluators[i] && !ofColumn(i, column) && (data.lacks[main]?.[i][column.place] || "no value")).filter(Boolean)[0] || nothing;
    body.replaceChildren(...known.map(([column, figure]) => row(label(column), [ofColumn(a, column), ofColumn(b, column)], figure, why(column))));
    if (mean) body.append(row(`mean of ${sets.length} sets`, [a, b].map((i) => evaluators[i] && overSets(sets.map((set) => setMean(i, set, main)))), mean, ""));
    const told = known.filter(([, figure]) => figure && figure.length > 2 && (figure[1] > 0 || figure[2] < 0)).length;
    one("#compare-note").textContent = figures.length
      ? `${one("#coefficient option")?.textContent} of ${names[0]} less that of ${names[1]}, on the rows that both have scored, with 95 % intervals: `
        + `${told} of ${figures.length} hold no 0.`
      : a === b ? "Choose two evaluators that differ." : "These two have no figures in common on the sets that count.";
    showApart(sets, a, b, names);
  }

  function pair() {
    if (state.pair) return state.pair;
    const sets = chosen();
    const means = evaluators.map((_, i) => overSets(sets.map((set) => setMean(i, set))));
    const order = evaluators.map((_, i) => i).filter(isWanted).sort((a, b) => (means[a] === null) - (means[b] === null) || (higher() ? 1 : -1) * ((means[b]?.[0] ?? 0) - (means[a]?.[0] ?? 0)));
    return order.length > 1 ? order.slice(0, 2) : [0, Math.min(1, evaluators.length - 1)];
  }

  function showApart(sets, a, b, names) {
    const found = [];
    for (const [place, group] of (cases?.groups ?? []).entries()) {
      const [i, j] = [a, b].map((evaluator) => group.evaluators.indexOf(evaluators[evaluator]?.name));
      if (!sets.includes(columns[group.column].set) || i < 0 || j < 0) continue;
      group.cases.forEach((item, number) => {
        const [first, second] = [item.places[i], item.places[j]];
        if (first !== null && second !== null && first !== undefined && second !== undefined) {
          found.push({ place, number, group, item, first, second });
        }
      });
    }
    found.sort((one, other) => Math.abs(other.first - other.second) - Math.abs(one.first - one.second));
    const items = new Set();
    const top = found.filter(({ item }) => !items.has(item.item) && items.add(item.item)).slice(0, 6);
    one("#apart-title").hidden = !top.length;
    one("#apart-note").textContent = top.length
      ? `Of the ${found.length} cases of these sets on this page, those on which the two stand furthest apart. Bars: the share of the set's rows that score below this one, in percent.`
      : "";
    one("#apart").replaceChildren(...top.map(({ place, number, group, item, first, second }) => {
      const { context, response } = cases.items[item.item];
      const gauge = (name, value, className) => {
        const bar = make("i", null, "");
        bar.style.width = `${value}%`;
        return make("div", null, `gauge ${className}`, make("span", name), make("div", null, "", bar), make("span", String(value)));
      };
      const button = make("button", "Show the case");
      button.type = "button";
      button.addEventListener("click", () => {
        openCase(place, number);
        one("#cases").scrollIntoView();
      });
      const before = context.at(-1);
      return make("li", null, "", make("p", group.name, "label"), ...(response && before ? [make("p", before[1], "said note")] : []),
        make("p", (response ?? before ?? ["", ""])[1].slice(0, 400), "said"), gauge("people", item.human[2], "human"), gauge(names[0], first, ""), gauge(names[1], second, ""), make("p", null, "", button));
    }));
  }

  // The page alone scrolls; the head of the table follows it, and a shade says that there is more at the right.
  const boxes = all(".frame > .scroll");
  function measure() {
    for (const box of boxes) box.parentElement.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  }
  function follow() {
    const { top, bottom } = board.getBoundingClientRect();
    const height = board.tHead.offsetHeight;
    const shift = top < 0 && bottom > 2 * height ? Math.min(-top, bottom - top - 2 * height) : 0;
    for (const header of headers) header.style.transform = shift ? `translateY(${shift}px)` : "";
  }
  for (const box of boxes) box.addEventListener("scroll", measure, { passive: true });
  addEventListener("scroll", follow, { passive: true });
  addEventListener("resize", () => { measure(); follow(); });

  // The address holds what differs from the page as it is opened; names, so that it means the same on a later board.
  function toAddress() {
    const words = new URLSearchParams();
    if (state.coefficient !== main) words.set("coefficient", state.coefficient);
    if (state.sets) words.set("sets", state.sets.map((set) => data.sets[set].key).join("~"));
    for (const [name, value] of Object.entries(state.filters)) if (value) words.set(name, value);
    if (state.evaluator) words.set("evaluator", state.evaluator);
    if (state.sort !== "mean" || state.ascending !== null) {
      const key = typeof state.sort === "number" ? `${data.sets[columns[state.sort].set].key}/${columns[state.sort].quality}` : state.sort;
      words.set("sort", `${state.ascending === null ? "" : state.ascending ? "up:" : "down:"}${key}`);
    }
    for (const i of state.pair ?? []) words.append("compare", evaluators[i].name);
    if (!state.intervals) words.set("intervals", "no");
    address.write(words);
  }
  function fromAddress() {
    state = initial();
    const words = address.read();
    if (!words) return;
    const known = data.coefficients.find(({ id }) => id === words.get("coefficient"));
    if (known) state.coefficient = known.id;
    if (words.has("sets")) state.sets = words.get("sets").split("~").map((key) => data.sets.findIndex((set) => set.key === key)).filter((set) => set >= 0);
    for (const select of all("[data-filter]")) {
      const value = words.get(select.dataset.filter);
      if ([...select.options].some((option) => option.value === value)) state.filters[select.dataset.filter] = value;
    }
    state.evaluator = words.get("evaluator") ?? "";
    const [, direction, key] = /^(up:|down:)?(.*)$/.exec(words.get("sort") ?? "mean");
    const place = columns.findIndex((column) => `${data.sets[column.set].key}/${column.quality}` === key);
    state.sort = place >= 0 ? place : key === "name" ? "name" : "mean";
    state.ascending = direction ? direction === "up:" : null;
    // Older links have both names in one word.
    const pair = words.getAll("compare").length === 2 ? words.getAll("compare") : (words.get("compare") ?? "").split("~");
    const names = pair.map((name) => evaluators.findIndex((evaluator) => evaluator.name === name));
    if (names.length === 2 && names.every((i) => i >= 0)) state.pair = names;
    state.intervals = words.get("intervals") !== "no";
  }
  function change(changes) {
    state = { ...state, ...changes };
    update();
    toAddress();
  }

  one("#coefficient").addEventListener("input", ({ target }) => change({ coefficient: target.value, ascending: null }));
  one("#evaluator").addEventListener("input", ({ target }) => change({ evaluator: target.value }));
  for (const select of all("[data-filter]")) select.addEventListener("input", () => change({ filters: { ...state.filters, [select.dataset.filter]: select.value } }));
  for (const input of all("input[name=set]")) {
    input.addEventListener("input", () => change({ sets: all("input[name=set]:checked").map(({ value }) => Number(value)) }));
  }
  for (const button of all("[data-preset]")) {
    const { preset } = button.dataset;
    const places = data.sets.map((_, place) => place);
    button.addEventListener("click", () => change({ sets: preset === "common" ? null : places.filter((place) => preset === "all" || data.sets[place].level === preset) }));
  }
  one("form.controls").addEventListener("submit", (event) => event.preventDefault());
  one("form.controls").addEventListener("reset", (event) => {
    event.preventDefault();
    change(initial());
  });
  document.addEventListener("click", ({ target }) => { if (!target.closest("#chooser")) one("#chooser").open = false; });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") one("#chooser").open = false; });
  for (const header of headers) {
    one("button", header).addEventListener("click", () => {
      const key = Number.isNaN(Number(header.dataset.key)) ? header.dataset.key : Number(header.dataset.key);
      const first = key === "name" || !higher();
      change({ sort: key, ascending: state.sort === key ? !(state.ascending ?? first) : first });
    });
  }
  one("#intervals").addEventListener("input", ({ target }) => change({ intervals: target.checked }));
  for (const id of ["#first", "#second"]) {
    one(id).replaceChildren(...evaluators.map(({ name }, i) => Object.assign(make("option", name), { value: String(i) })));
    one(id).addEventListener("input", () => change({ pair: [Number(one("#first").value), Number(one("#second").value)] }));
  }
  // A link within the page opens what it leads to, and leaves the address to what is shown.
  for (const link of all('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      const target = one(link.getAttribute("href"));
      event.preventDefault();
      target.hidden = false;
      if (target.matches("details")) target.open = true;
      target.scrollIntoView();
      (one("summary, h2", target) ?? target).focus?.({ preventScroll: true });
    });
  }
  addEventListener("hashchange", () => { fromAddress(); update(); });

  let openCase = () => {};
  if (cases) showCases();
  fromAddress();
  update();

  function showCases() {
    const column = one("#case-column");
    const chooser = one("#case");
    const titled = (title, ...children) => make("div", null, "", make("h3", title), ...children);
    const number = (figure) => String(Number(figure.toPrecision(3)));

    function bubble([speaker, text], other, judged) {
      const turn = make("div", null, `turn${other ? " other" : ""}${judged ? " judged" : ""}`);
      const note = [judged ? "response" : "", speaker || ""].filter(Boolean).join(", ");
      if (note) turn.append(make("small", note));
      turn.append(text);
      return turn;
    }

    function scoreRow(name, value, rescaled, why, className) {
      const bar = make("div", null, "");
      bar.style.width = `${rescaled === null ? 0 : Math.max(0, Math.min(100, 25 * (rescaled - 1)))}%`;
      bar.hidden = rescaled === null;
      const head = make("th", name);
      head.scope = "row";
      return make("tr", null, className, head, make("td", value === null ? (why || "no score").replaceAll("_", " ") : number(value)),
        make("td", rescaled === null ? "–" : rescaled.toFixed(2)), make("td", null, "bar-cell", bar));
    }

    function show() {
      const group = cases.groups[column.selectedIndex];
      const item = group.cases[chooser.selectedIndex];
      const { id, system, context, response, references, facts } = cases.items[item.item];
      const turns = context.map((turn, place) => bubble(turn, (context.length - place) % 2 === 0, false));
      if (response) turns.push(bubble(response, true, true));
      const left = make("div", null, "", titled(response ? "Context and response" : "Dialogue", ...turns));
      if (references.length) left.append(titled("References", ...references.map((text) => make("p", text))));
      if (facts.length) left.append(titled("Facts", ...facts.map((text) => make("p", text))));
      const heads = ["by", "score", "1 to 5", "picture"].map((text) => Object.assign(make("th", null, "", make("span", text, text === "by" || text === "picture" ? "hidden" : "")), { scope: "col" }));
      const rows = group.evaluators.flatMap((name, place) => {
        const score = item.scores[place];
        const range = group.ranges[place];
        const stretched = score === null || !range ? null : 1 + (4 * (score - range[0])) / (range[1] - range[0]);
        return score === null && item.why[place] === undefined ? [] : [scoreRow(name, score, stretched, item.why[place], "")];
      });
      const scores = make("table", null, "scores", make("thead", null, "", make("tr", null, "", ...heads)),
        make("tbody", null, "", scoreRow("people", item.human[0], item.human[1], "", "human"), ...rows));
      one("#shown").replaceChildren(left, make("div", null, "", titled([id, system ? `by ${system}` : ""].filter(Boolean).join(", "), scores)));
      one("#previous").disabled = chooser.selectedIndex === 0;
      one("#next").disabled = chooser.selectedIndex === group.cases.length - 1;
    }

    function fill() {
      const group = cases.groups[column.selectedIndex];
      const first = ({ response, id }) => (response ? response[1] : id).slice(0, 60);
      chooser.replaceChildren(...group.cases.map(({ item }, place) => make("option", `${place + 1}: ${first(cases.items[item])}`)));
      show();
    }

    openCase = (place, item) => {
      column.selectedIndex = place;
      fill();
      chooser.selectedIndex = item;
      show();
    };
    column.replaceChildren(...cases.groups.map((group) => make("option", `${group.name} (${group.cases.length} of ${group.n_total})`)));
    column.addEventListener("input", fill);
    chooser.addEventListener("input", show);
    for (const [id, step] of [["previous", -1], ["next", 1]]) {
      one(`#${id}`).addEventListener("click", () => {
        chooser.selectedIndex += step;
        show();
      });
    }
    fill();
  }
})();
