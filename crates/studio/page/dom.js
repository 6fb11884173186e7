// Elements by hand: h("button", {class: "chip", onclick: f}, "Run", child).

export function h(tag, props, ...children) {
  return dress(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function dress(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    // Styles go through the object model: the page's policy forbids style attributes.
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  fill(element, children);
  return element;
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child);
  }
}

/** Puts these in place of what an element has. */
export function put(element, ...children) {
  element.replaceChildren();
  fill(element, children);
  return element;
}

/** Calls `f` once things have been quiet for so many milliseconds. */
export function debounce(f, wait) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** A drop-down list: options are texts or [value, text] pairs. */
export function choice(props, options, chosen) {
  return h(
    "select",
    props,
    options.map((option) => {
      const [value, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value, selected: String(value) === String(chosen) }, text);
    }),
  );
}

const said = new Map();
/** Says something to people who listen to the page; the same thing only once in a row. */
export function say(text, where = "said") {
  if (said.get(where) === text) return;
  said.set(where, text);
  const region = document.getElementById(where);
  if (region) region.textContent = text;
}

/** A value kept in this browser, or nothing where that is forbidden. */
export const keep = {
  get(key) {
    try {
      return localStorage.getItem(`studio.${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      if (value === null) localStorage.removeItem(`studio.${key}`);
      else localStorage.setItem(`studio.${key}`, value);
    } catch {
      /* a private window: nothing is kept */
    }
  },
};
