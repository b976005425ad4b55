(() => {
  "use strict";
  const { make, one } = page;
  const data = JSON.parse(one("#data").textContent);
  const given = new Map();
  let rater = data.rater;
  let place = 0;
  let isSending = false;

  const complain = (text) => {
    one("#problem").textContent = text;
    one("#problem").hidden = !text;
  };

  function show() {
    const isDone = place >= data.rows.length;
    const left = data.rows.length - given.size;
    one("#progress").textContent = `${given.size} of ${data.rows.length} labelled`;
    one("#choices").hidden = one("#on").hidden = isDone;
    one("#back").disabled = place === 0;
    const chat = one("#chat");
    if (isDone) {
      chat.replaceChildren(make("p", left ? `${left} were skipped.` : "All are labelled. Thank you.", "lead"));
      if (left) chat.append(make("button", "Show the skipped ones"));
      chat.querySelector("button")?.addEventListener("click", () => go(-1, 1));
      return;
    }
    const [before, role, text, id] = data.rows[place];
    const turns = [...before, [role, text]].filter(([, said]) => said);
    chat.replaceChildren(...turns.map(([who, said], number) => {
      // Without roles, speakers take turns, and what is judged stands on the right.
      const isOther = who ? !["user", "human"].includes(who) : (turns.length - number) % 2 === 1;
      const isJudged = text && number === turns.length - 1;
      const bubble = make("div", null, `turn${isOther ? " other" : ""}${isJudged ? " judged" : ""}`);
      if (who) bubble.append(make("small", who));
      bubble.append(said);
      return bubble;
    }));
    if (!turns.length) chat.append(make("p", id, "lead"));
    for (const button of one("#choices").children) {
      button.setAttribute("aria-pressed", String(given.get(place) === button.value));
    }
    chat.lastChild.scrollIntoView({ block: "nearest" });
    chat.focus({ preventScroll: true });
  }

  // To the next row in a direction that has no answer yet; a step back goes to any row.
  function go(from, step) {
    place = from + step;
    while (step > 0 && place < data.rows.length && given.has(place)) place += 1;
    place = Math.max(0, place);
    show();
  }

  async function answer(label) {
    if (isSending || place >= data.rows.length) return;
    isSending = true;
    const row = place;
    try {
      const body = JSON.stringify({ rater, row, label });
      const reply = await fetch("/answer", { method: "POST", headers: { "X-Token": data.token }, body });
      if (!reply.ok) throw new Error((await reply.json()).error);
      given.set(row, label);
      complain("");
      // The person may have gone on by an arrow meanwhile.
      if (place === row) go(row, 1);
      else show();
    } catch (error) {
      complain(`Not kept: ${error.message.replace(/\.?$/, ".")} Is \`dialeval label\` still running?`);
    } finally {
      isSending = false;
    }
  }

  async function start() {
    const reply = await fetch(`/answers?${new URLSearchParams({ token: data.token, rater })}`);
    for (const [number, label] of Object.entries(await reply.json())) given.set(Number(number), label);
    one("#name").hidden = true;
    one("#answer").hidden = false;
    one("#who").textContent = rater;
    go(-1, 1);
  }

  for (const [key, label] of data.choices) {
    const button = make("button", label);
    button.value = label;
    if (key !== label) button.append(make("small", `key ${key}`));
    button.addEventListener("click", () => answer(label));
    one("#choices").append(button);
  }
  one("#back").addEventListener("click", () => go(place, -1));
  one("#on").addEventListener("click", () => go(place, 1));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select") || one("#answer").hidden) return;
    const choice = data.choices.find(([key]) => key === event.key.toLowerCase());
    if (choice && !event.repeat) answer(choice[1]);
    else if (event.key === "ArrowLeft") go(place, -1);
    else if (event.key === "ArrowRight") go(place, 1);
  });
  one("#name").addEventListener("submit", (event) => {
    event.preventDefault();
    rater = one("#rater").value.trim();
    if (rater) start();
  });
  if (rater) start();
  else {
    one("#name").hidden = false;
    one("#rater").focus();
  }
})();
