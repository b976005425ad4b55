(() => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.documentElement.classList.add("scripted");

  const table = one("#board");
  const body = one("tbody.evaluators", table);
  const headers = all("thead th", table);
  const rows = all("tr", body);
  const references = all("tbody.references tr", table);
  const MEAN = headers.findIndex((header) => header.dataset.key === "mean");
  const controls = Object.fromEntries(
    ["coefficient", "dataset", "level", "quality", "evaluator", "intervals"].map((id) => [id, one(`#${id}`)]).filter(([, item]) => item));
  let sorted = { key: "mean", ascending: false };

  const higherIsBetter = () => controls.coefficient.selectedOptions[0]?.dataset.higher !== "false";

  const shown = (cell) => all(".figure", cell).find((item) => item.dataset.coefficient === controls.coefficient.value);

  function value(row, key) {
    if (key === "name") return row.dataset.name;
    const figure = shown(row.cells[headers.findIndex((header) => header.dataset.key === key)]);
    return figure?.dataset.state === "value" ? Number(figure.dataset.value) : null;
  }

  // Over the columns that are shown; several qualities of one data set count once, by their mean.
  function showMean(row, columns) {
    const cell = shown(row.cells[MEAN]);
    if (!cell) return;
    const sets = new Map(columns.map(({ dataset }) => [`${dataset.dataset}/${dataset.level}`, []]));
    for (const header of columns) {
      const figure = shown(row.cells[headers.indexOf(header)]);
      if (figure?.dataset.state === "value") sets.get(`${header.dataset.dataset}/${header.dataset.level}`).push(Number(figure.dataset.value));
    }
    const average = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const means = [...sets.values()].filter((values) => values.length).map(average);
    cell.dataset.state = means.length ? "value" : "absent";
    cell.dataset.value = means.length ? average(means) : "";
    cell.replaceChildren();
    if (!means.length) return cell.append("–");
    const number = document.createElement("b");
    number.textContent = average(means).toFixed(3);
    const count = document.createElement("small");
    count.textContent = `${means.length} of ${sets.size}`;
    count.className = means.length < sets.size ? "partial" : "";
    cell.append(number, count);
  }

  function sort() {
    const direction = sorted.ascending ? 1 : -1;
    const keyed = rows.map((row) => [value(row, sorted.key), row]);
    // What is missing stands last in either direction.
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return direction * (typeof a === "string" ? a.localeCompare(b) : a - b);
    });
    body.append(...keyed.map(([, row]) => row));
    for (const header of headers) {
      const order = sorted.ascending ? "ascending" : "descending";
      header.setAttribute("aria-sort", header.dataset.key === sorted.key ? order : "none");
    }
  }

  function filter() {
    const { coefficient, evaluator } = controls;
    const wanted = (item) => ["dataset", "level", "quality"].every(
      (name) => !controls[name]?.value || item.dataset[name] === controls[name].value);
    const named = (name) => name.toLowerCase().includes(evaluator.value.trim().toLowerCase());

    for (const item of all("[data-coefficient]")) item.hidden = item.dataset.coefficient !== coefficient.value;
    headers.forEach((header, place) => {
      if (header.dataset.dataset === undefined) return;
      const hasFigure = rows.some((row) => shown(row.cells[place])?.dataset.state !== "absent");
      header.hidden = !wanted(header) || !hasFigure;
      for (const row of [...rows, ...references]) row.cells[place].hidden = header.hidden;
    });
    const columns = headers.filter((header) => header.dataset.dataset !== undefined && !header.hidden);
    const wasRun = (row) => columns.some((header) => (shown(row.cells[headers.indexOf(header)])?.dataset.state ?? "absent") !== "absent");
    for (const row of [...rows, ...references]) showMean(row, columns);
    for (const row of references) row.hidden = !wasRun(row);
    for (const row of rows) row.hidden = !named(row.dataset.name) || !wasRun(row);
    for (const item of all(".card, .runs tbody tr")) item.hidden = !named(item.dataset.name);
    for (const item of all("details.column")) item.hidden = !wanted(item);
    table.classList.toggle("no-intervals", !controls.intervals.checked);
    const evaluators = rows.filter((row) => !row.hidden).length;
    const nColumns = headers.filter((header) => header.dataset.dataset !== undefined).length;
    one("#count").textContent = `${evaluators} of ${rows.length} evaluators, ${columns.length} of ${nColumns} columns`;
    sort();
  }

  for (const header of headers) {
    one("button", header).addEventListener("click", () => {
      const { key } = header.dataset;
      const best = key === "name" || !higherIsBetter();
      sorted = { key, ascending: sorted.key === key ? !sorted.ascending : best };
      sort();
    });
  }
  controls.coefficient.addEventListener("input", () => {
    sorted.ascending = sorted.key === "name" ? sorted.ascending : !higherIsBetter();
  });
  for (const control of Object.values(controls)) control.addEventListener("input", filter);
  one("form.controls").addEventListener("submit", (event) => event.preventDefault());
  filter();

  const data = one("#case-data");
  if (data) showCases(JSON.parse(data.textContent));

  function showCases(groups) {
    const column = one("#case-column");
    const chooser = one("#case");
    // Every text goes in as text: nothing of a dialogue is ever read as markup.
    const make = (tag, text, className, ...children) => {
      const element = document.createElement(tag);
      if (text !== null) element.textContent = text;
      if (className) element.className = className;
      element.append(...children);
      return element;
    };
    const titled = (title, ...children) => make("div", null, "", make("h3", title), ...children);
    const number = (figure) => String(Number(figure.toPrecision(3)));

    function bubble([speaker, text], other, judged) {
      const turn = make("div", null, `turn${other ? " other" : ""}${judged ? " judged" : ""}`);
      const note = [judged ? "response" : "", speaker || ""].filter(Boolean).join(", ");
      if (note) turn.append(make("small", note));
      turn.append(text);
      return turn;
    }

    function scoreRow(name, score, className) {
      const bar = make("div", null, "");
      bar.style.width = `${score.rescaled === null ? 0 : Math.max(0, Math.min(100, 25 * (score.rescaled - 1)))}%`;
      bar.hidden = score.rescaled === null;
      const label = make("th", name);
      label.scope = "row";
      return make("tr", null, className, label, make("td", score.value === null ? score.reason || "no score" : number(score.value)),
        make("td", score.rescaled === null ? "–" : score.rescaled.toFixed(2)), make("td", null, "bar", bar));
    }

    function show() {
      const group = groups[column.selectedIndex];
      const item = group.cases[chooser.selectedIndex];
      const turns = item.context.map((turn, place) => bubble(turn, (item.context.length - place) % 2 === 0, false));
      if (item.response) turns.push(bubble(item.response, true, true));
      const left = make("div", null, "", titled(item.response ? "Context and response" : "Dialogue", ...turns));
      if (item.references.length) left.append(titled("References", ...item.references.map((text) => make("p", text))));
      if (item.facts.length) left.append(titled("Facts", ...item.facts.map((text) => make("p", text))));
      const head = make("tr", null, "", ...["", "score", "1 to 5", ""].map((text) => make("th", text)));
      const scores = make("table", null, "scores", make("thead", null, "", head), make("tbody", null, "",
        scoreRow("people", item.human, "human"), ...item.judgements.map((score) => scoreRow(score.evaluator, score, ""))));
      const where = [item.id, item.system ? `by ${item.system}` : ""].filter(Boolean).join(", ");
      one("#shown").replaceChildren(left, make("div", null, "", titled(where, scores)));
      one("#previous").disabled = chooser.selectedIndex === 0;
      one("#next").disabled = chooser.selectedIndex === group.cases.length - 1;
    }

    function fill() {
      const group = groups[column.selectedIndex];
      const first = (item) => (item.response ? item.response[1] : item.id).slice(0, 60);
      chooser.replaceChildren(...group.cases.map((item, place) => make("option", `${place + 1}: ${first(item)}`)));
      show();
    }

    column.replaceChildren(...groups.map((group) => make("option", `${group.name} (${group.cases.length} of ${group.n_total})`)));
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
