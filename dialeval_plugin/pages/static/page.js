// What the scripts of all pages share.
const page = (() => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  // Every text goes in as text: nothing of a dialogue or a name is ever read as markup.
  const make = (tag, text, className, ...children) => {
    const element = document.createElement(tag);
    if (text !== null) element.textContent = text;
    if (className) element.className = className;
    element.append(...children);
    return element;
  };
  const draw = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  document.documentElement.classList.add("scripted");
  // Adding 0 turns the -0.00 of a small negative number into 0.00.
  const fixed = (value, decimals) => (Number(value.toFixed(decimals)) + 0).toFixed(decimals);

  const theme = one("#theme");
  const setTheme = (name) => {
    document.documentElement.dataset.theme = name;
    theme.value = name;
  };
  try {
    setTheme(localStorage.getItem("theme") ?? "");
  } catch {
    setTheme("");
  }
  theme.addEventListener("input", () => {
    setTheme(theme.value);
    try {
      localStorage.setItem("theme", theme.value);
    } catch {
      // A frame may keep nothing; the choice holds until the page is closed.
    }
  });

  return { all, draw, fixed, make, one };
})();
