(() => {
  "use strict";
  const { address, all, fixed, make, one } = page;
  const data = JSON.parse(one("#data").textContent);
  const BATCH = 50;
  const WINDOW = 30;
  const MOST_OPTIONS = 50;
  const CONTROLS = ["find", "sort", "measure", "from", "to", "role", "scored"];
  const isDialogue = data.level === "dialogue";

  // Conversations with what they are sorted and searched by.
  const conversations = data.conversations.map(([id, rows], place) => {
    const scores = rows.map(({ score }) => score).filter((score) => score !== undefined);
    const own = scores.map((score) => data.sign * score);
    return {
      id, rows, place, n: scores.length,
      mean: own.length ? own.reduce((sum, value) => sum + value, 0) / own.length : null,
      words: null,
    };
  });
  const wordsOf = (conversation) => {
    conversation.words ??= [conversation.id, ...conversation.rows.flatMap((row) => [
      row.id, row.text, row.source, ...(row.before ?? []).map(([, text]) => text), ...(row.notes ?? []).map(([, text]) => text),
      ...(row.kept ?? []).flatMap((places, field) => places.map((place) => data.kept[field].values[place])),
    ])].join("\n").toLowerCase();
    return conversation.words;
  };
  const number = (value) => (value === null || value === undefined ? "–" : fixed(value, Math.abs(value) >= 100 ? 1 : 3));
  const isWhole = data.bars.score.every(([low, high]) => low === high && Number.isInteger(low));

  // What is shown: this and nothing else is in the address.
  const initial = () => ({ find: "", sort: "worst", measure: "score", from: "", to: "", role: "", scored: "", conversation: "", kept: data.kept.map(() => "") });
  let state = initial();
  let timer = 0;
  let shown = [];

  function isWanted(row, range) {
    const value = row[state.measure];
    if (range && (value === undefined || value < range[0] || value > range[1])) return false;
    if (state.role && (row.role ?? "unknown") !== state.role) return false;
    if (state.scored === "yes" && row.score === undefined) return false;
    if (state.scored === "no" && row.score !== undefined) return false;
    if (!["", "yes", "no"].includes(state.scored) && row.why?.[0] !== state.scored) return false;
    return state.kept.every((wanted, field) => {
      if (!wanted) return true;
      const { values } = data.kept[field];
      const places = row.kept?.[field] ?? [];
      return values.length > MOST_OPTIONS
        ? places.some((place) => values[place].toLowerCase().includes(wanted.toLowerCase()))
        : places.some((place) => values[place] === wanted);
    });
  }

  function update() {
    const [from, to] = [state.from, state.to].map((text) => (text.trim() === "" ? NaN : Number(text.replace(",", "."))));
    const range = Number.isNaN(from) && Number.isNaN(to) ? null : [Number.isNaN(from) ? -Infinity : from, Number.isNaN(to) ? Infinity : to];
    const find = state.find.trim().toLowerCase();
    shown = [];
    let n = 0;
    for (const conversation of conversations) {
      if (state.conversation ? conversation.id !== state.conversation : find && !wordsOf(conversation).includes(find)) continue;
      const hits = conversation.rows.filter((row) => isWanted(row, range));
      if (!hits.length) continue;
      n += hits.length;
      shown.push({ ...conversation, hits: new Set(hits) });
    }
    const byMean = (a, b) => (a.mean === null) - (b.mean === null) || a.mean - b.mean;
    const orders = { mean: byMean, best: (a, b) => (a.mean === null) - (b.mean === null) || b.mean - a.mean, id: (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }) };
    if (orders[state.sort]) shown.sort((a, b) => orders[state.sort](a, b) || a.place - b.place);
    const counted = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
    const of = shown.length === conversations.length ? "" : `${shown.length.toLocaleString("en")} of `;
    one("#count").textContent = shown.length
      ? `${of}${counted(conversations.length, "conversation")}${isDialogue ? "" : `, ${counted(n, "response")}`}.`
      : "No conversation matches.";
    one("#alone").hidden = !state.conversation;
    for (const name of CONTROLS) one(`#${name}`).value = state[name];
    for (const control of all("[data-field]")) control.value = state.kept[control.dataset.field];
    for (const bars of all(".bars")) {
      const isOfThis = bars.dataset.measure === state.measure && range !== null;
      bars.classList.toggle("chosen", isOfThis);
      for (const button of all("button", bars)) {
        button.setAttribute("aria-pressed", String(isOfThis && button.dataset.n !== "0" && Number(button.dataset.least) >= range[0] && Number(button.dataset.greatest) <= range[1]));
      }
    }
    one("#list").replaceChildren();
    addMore();
  }

  function addMore() {
    const start = BATCH * one("#list").childElementCount;
    const isAll = one("#open").checked;
    // A browser lays out parts of a long list that are out of sight much faster than as many entries.
    one("#list").append(make("div", null, "part", ...shown.slice(start, start + BATCH).map((conversation, place) => entry(conversation, isAll || start + place < 3))));
    const left = shown.length - start - BATCH;
    one("#more").hidden = left <= 0;
    one("#more").textContent = `Show ${Math.min(left, BATCH)} more of ${left.toLocaleString("en")}`;
  }

  // How bad a score is among those of the file, as a tint.
  function tint(score) {
    if (score === undefined || data.cuts.length < 6) return "";
    const value = data.sign * score;
    const [very, low, lowish, middle, high, best] = data.cuts;
    if (value < middle) return value <= very ? "n5" : value <= low ? "n4" : value <= lowish ? "n2" : "";
    return value > middle ? (value >= best ? "p4" : value >= high ? "p2" : "") : "";
  }
  const pill = (row) => make("span", row.score === undefined ? "unscored" : isWhole ? String(row.score) : number(row.score), `pill ${row.score === undefined ? "none" : tint(row.score)}`);

  function entry(conversation, isOpen) {
    const { id, rows, n, mean } = conversation;
    const scored = [...conversation.hits].filter(({ score }) => score !== undefined);
    const worst = scored.reduce((a, b) => (data.sign * b.score < data.sign * a.score ? b : a), scored[0] ?? [...conversation.hits][0]);
    const about = isDialogue ? "" : `${rows.length === n ? n : `${n} of ${rows.length}`} scored, mean ${number(mean === null ? null : data.sign * mean)}`;
    const name = make("span", id, "name");
    name.dir = "auto";
    const start = make("span", worst.text ?? (worst.before ?? []).map(([, text]) => text).join(" / ").slice(0, 300), "start");
    start.dir = "auto";
    const item = make("details", null, "entry chat", make("summary", null, "", pill(worst), name, make("span", about, "about"), ...(start.textContent ? [start] : [])));
    item.dataset.id = id;
    const fill = () => {
      if (item.open && item.childElementCount === 1) item.append(...body(conversation, worst));
    };
    item.addEventListener("toggle", fill);
    item.open = isOpen;
    fill();
    return item;
  }

  function body(conversation, worst) {
    const link = make("a", "Link to this conversation");
    link.href = `#?${new URLSearchParams({ conversation: conversation.id })}`;
    const chat = make("div", null, "turns");
    const turns = conversation.rows.flatMap((row) => [...(row.before ?? []).map((turn) => ({ turn })), { row, turn: [row.role, row.text] }]);
    const sides = sidesOf(conversation, turns);
    const centre = turns.findIndex(({ row }) => row === worst);
    let [first, last] = [Math.max(0, centre - WINDOW), Math.min(turns.length, centre + WINDOW)];
    const draw = () => {
      const step = (text, move) => {
        const button = make("button", text, "jump");
        button.type = "button";
        button.addEventListener("click", () => { move(); draw(); });
        return button;
      };
      chat.replaceChildren(
        ...(first ? [step(`Show ${Math.min(first, 100)} of ${first} earlier turns`, () => { first = Math.max(0, first - 100); })] : []),
        ...turns.slice(first, last).map((turn, place) => said(turn, sides(turn, first + place), conversation)),
        ...(last < turns.length ? [step(`Show ${Math.min(turns.length - last, 100)} of ${turns.length - last} later turns`, () => { last = Math.min(turns.length, last + 100); })] : []),
      );
    };
    draw();
    return [make("div", null, "foot", link, ...keptOf(conversation.rows[0]).map((text) => make("span", text)).filter(() => isAlike(conversation))), chat];
  }

  // What was kept of the source: once where all rows of a conversation have the same, else with each.
  const keptOf = (row) => (row.kept ?? []).flatMap((places, field) => {
    const { name, values } = data.kept[field];
    return places.length ? [`${name}: ${places.map((place) => values[place]).join(", ")}`] : [];
  });
  const isAlike = ({ rows }) => new Set(rows.map(({ kept }) => JSON.stringify(kept))).size === 1;

  // The user stands at the left, whoever answers at the right; of others every second speaker.
  function sidesOf(conversation, turns) {
    const roles = [...new Set(turns.map(({ turn }) => turn[0]).filter(Boolean))];
    return ({ row, turn: [role] }, place) => {
      if (role === "user" || role === "human") return false;
      if (role === "assistant") return true;
      if (role) return roles.includes("user") || roles.includes("assistant") ? row !== undefined || roles.indexOf(role) % 2 === 1 : roles.indexOf(role) % 2 === 1;
      const next = turns.findIndex((other, later) => later >= place && other.row);
      return (next - place) % 2 === 0;
    };
  }

  function marked(text) {
    const find = state.find.trim().toLowerCase();
    const lower = text.toLowerCase();
    if (!find || lower.length !== text.length) return [text];
    const parts = [];
    let end = 0;
    for (let at = lower.indexOf(find); at >= 0 && parts.length < 400; at = lower.indexOf(find, end)) {
      parts.push(text.slice(end, at), make("mark", text.slice(at, at + find.length)));
      end = at + find.length;
    }
    return [...parts, text.slice(end)];
  }

  function said({ row, turn: [role, text] }, isOther, conversation) {
    const side = isOther ? " other" : "";
    const block = make("div", null, "said");
    if (text !== undefined && text !== null) {
      const isHit = row && conversation.hits.has(row);
      const bubble = make("div", null, `turn${side}${row ? ` judged ${isHit ? "" : "miss "}${tint(row.score)}` : ""}`);
      const above = [role ?? "", row?.message === undefined ? "" : `message ${row.message}`].filter(Boolean).join(", ");
      if (above) bubble.append(make("small", above));
      bubble.append(...marked(text));
      if (text.trim() === "") bubble.append(make("small", "empty"));
      block.append(bubble);
    }
    if (row) block.append(verdict(row, text === undefined || isDialogue ? "" : side, conversation));
    return block;
  }

  function verdict(row, side, conversation) {
    const parts = [pill(row)];
    const say = (text, className = "") => parts.push(make("span", text, className));
    if (row.text === undefined && !row.before) say([row.role, row.message === undefined ? row.id : `message ${row.message}`].filter(Boolean).join(", "));
    if (row.percentile !== undefined) say(`percentile ${fixed(row.percentile, 1)}`);
    if (row.why) say(row.why.filter(Boolean).join(": ").replaceAll("_", " "), "why");
    for (const [name, text] of row.notes ?? []) say(`${name.replaceAll("_", " ")}: ${text}`);
    if (!isAlike(conversation)) for (const text of keptOf(row)) say(text);
    if (row.link) {
      const link = make("a", row.source);
      link.href = row.link;
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      parts.push(link);
    } else if (row.source) {
      const source = make("span", row.source);
      const copy = make("button", "Copy");
      copy.type = "button";
      copy.setAttribute("aria-label", `Copy ${row.source}`);
      copy.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(row.source);
          copy.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(source);
        }
      });
      parts.push(make("span", null, "", source, " ", copy));
    }
    const figures = data.columns.map((name, place) => [name, row.columns?.[place]]).filter(([, value]) => value !== null && value !== undefined);
    if (figures.length) {
      const list = make("dl", null, "", ...figures.map(([name, value]) => make("div", null, "", make("dt", name.replaceAll("_", " ")), make("dd", number(value)))));
      parts.push(make("details", null, "", make("summary", figures.length === 1 ? "1 column" : `${figures.length} columns`), list));
    }
    return make("div", null, `verdict${side} ${tint(row.score)}`, ...parts);
  }

  // Bars are buttons: each chooses the range that it counts.
  function chart(measure, title, bars) {
    const most = Math.max(...bars.map(([, , n]) => n));
    const short = (value) => String(Number(value.toPrecision(4)));
    const buttons = bars.map(([low, high, n, least = low, greatest = high]) => {
      const bar = make("i", null, "");
      bar.style.height = n ? `max(2px, ${(100 * n) / most}%)` : "0";
      const button = make("button", null, "", bar);
      button.type = "button";
      Object.assign(button.dataset, { n, least, greatest });
      button.title = `${low === high ? short(low) : `${short(low)} to ${short(high)}`}: ${n.toLocaleString("en")}`;
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        const isChosen = state.measure === measure && state.from === String(least) && state.to === String(greatest);
        change(isChosen ? { from: "", to: "" } : { ...chosen(), measure, from: String(least), to: String(greatest) });
      });
      return button;
    });
    const box = make("div", null, "bars", ...buttons);
    box.dataset.measure = measure;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", title);
    const ends = [bars[0][0], ...(bars.length > 2 ? [bars[Math.floor(bars.length / 2)][0]] : []), bars.at(-1)[1]];
    const total = bars.reduce((sum, [, , n]) => sum + n, 0);
    return make("figure", null, "", make("figcaption", `${title} `, "", make("span", `${total.toLocaleString("en")}, the highest bar ${most.toLocaleString("en")}`)),
      box, make("div", null, "ends", ...ends.map((end) => make("span", short(end)))));
  }

  function toAddress() {
    const words = new URLSearchParams();
    const usual = initial();
    for (const name of Object.keys(usual)) if (name !== "kept" && state[name] !== usual[name]) words.set(name, state[name]);
    state.kept.forEach((value, field) => { if (value) words.set(`kept.${data.kept[field].name}`, value); });
    address.write(words);
  }
  function fromAddress() {
    state = initial();
    const words = address.read();
    if (!words) return;
    for (const name of ["find", "from", "to", "conversation"]) state[name] = words.get(name) ?? "";
    for (const name of ["sort", "measure", "role", "scored"]) {
      if ([...one(`#${name}`).options].some(({ value }) => value === words.get(name))) state[name] = words.get(name);
    }
    state.kept = data.kept.map(({ name, values }) => {
      const value = words.get(`kept.${name}`) ?? "";
      return values.length > MOST_OPTIONS || values.includes(value) ? value : "";
    });
  }
  function change(changes) {
    clearTimeout(timer);
    state = { ...state, ...changes };
    update();
    toAddress();
  }
  const chosen = () => ({
    ...Object.fromEntries(CONTROLS.map((name) => [name, one(`#${name}`).value])),
    kept: all("[data-field]").map(({ value }) => value), conversation: "",
  });

  const option = (value, text = value) => Object.assign(make("option", text), { value });
  const hasPercentiles = data.bars.percentile.length > 0;
  if (data.bars.score.length) one("#charts").append(chart("score", `Scores (${data.main})`, data.bars.score));
  if (hasPercentiles) one("#charts").append(chart("percentile", "Percentiles among good responses", data.bars.percentile));
  one("#distribution").hidden = !data.bars.score.length;
  one("#measure-label").hidden = !hasPercentiles;
  const roles = [...new Set(data.conversations.flatMap(([, rows]) => rows.map(({ role }) => role ?? "unknown")))].sort();
  one("#role-label").hidden = roles.length < 2;
  one("#role").append(...roles.map((role) => option(role)));
  const reasons = [...new Set(data.conversations.flatMap(([, rows]) => rows.flatMap(({ why }) => (why ? [why[0]] : []))))].sort();
  one("#scored-label").hidden = !reasons.length;
  one("#scored").append(...reasons.map((reason) => option(reason, `unscored: ${reason.replaceAll("_", " ")}`)));
  data.kept.forEach(({ name, values }, field) => {
    const isShort = values.length <= MOST_OPTIONS;
    const control = isShort ? make("select", null, "", option("", "any"), ...[...values].sort().map((value) => option(value)))
      : Object.assign(make("input", null), { type: "search", placeholder: "part of it", autocomplete: "off" });
    control.dataset.field = field;
    one("#kept").append(make("label", `${name} `, "", control));
  });
  one("#kept").hidden = !data.kept.length;

  // What is typed is looked for when the typing pauses.
  for (const control of all(".controls :is(select, input[type=search])")) {
    control.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => change(chosen()), control.matches("select") ? 0 : 120);
    });
  }
  one("#open").addEventListener("input", update);
  one("#more").addEventListener("click", addMore);
  one("#alone").addEventListener("click", () => change({ conversation: "" }));
  one("form.controls").addEventListener("submit", (event) => event.preventDefault());
  one("form.controls").addEventListener("reset", (event) => {
    event.preventDefault();
    one("#open").checked = false;
    change(initial());
  });
  const end = new IntersectionObserver((seen) => {
    if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
    addMore();
    // It only tells of changes: where the end is in sight again at once, as when a key is held, nothing would have changed.
    end.unobserve(one("#more"));
    end.observe(one("#more"));
  }, { rootMargin: "600px" });
  end.observe(one("#more"));
  // A link within the page leaves the address to what is shown.
  for (const link of all('nav a[href^="#"], .skip')) {
    link.addEventListener("click", (event) => {
      const target = one(link.getAttribute("href"));
      event.preventDefault();
      target.scrollIntoView();
      one("h2[tabindex]", target)?.focus({ preventScroll: true });
    });
  }
  addEventListener("hashchange", () => {
    fromAddress();
    update();
    if (state.conversation) one("#conversations").scrollIntoView();
  });
  fromAddress();
  update();
  if (state.conversation) one("#conversations").scrollIntoView();
})();
