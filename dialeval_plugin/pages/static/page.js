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

  // What is shown stands in the address after #?, so that a link to it can be sent.
  const address = {
    read: () => (location.hash.startsWith("#?") ? new URLSearchParams(location.hash.slice(2)) : null),
    write: (words) => {
      const text = words.toString();
      try {
        history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
      } catch {
        // Inside a frame without an address of its own there is nothing to share.
      }
    },
  };

  return { address, all, draw, fixed, make, one };
})();
