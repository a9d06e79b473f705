// Building the document. Strings become text nodes, never markup.

/** Return the element with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * Make an element.
 * @param {string} tag
 * @param {Object} attributes - `class` and others; a function is a listener; true is an empty attribute, false none
 * @param {...(Node|string|null)} children
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a number as the server wrote it for people, with its power of ten raised. */
export function number(readable) {
  const nodes = document.createDocumentFragment();
  readable.split(/10\^(\d+)/).forEach((part, i) => {
    if (i % 2 === 0) nodes.append(part);
    else nodes.append("10", make("span", { class: "visually-hidden" }, " to the power of "), make("sup", {}, part));
  });
  return nodes;
}

/** Return a list of labels; `limit` of them at first, the rest when asked for. */
export function labelList(labels, style, { limit = 40, none = "none" } = {}) {
  if (labels.length === 0) return make("p", { class: `none ${style}` }, none);
  const list = make("ul", { class: `chips ${style}` });
  const show = (names) => list.append(...names.map((name) => make("li", { dir: "auto" }, name)));
  show(labels.slice(0, limit));
  if (labels.length <= limit) return list;
  const rest = labels.slice(limit);
  const button = make("button", { class: "more", type: "button", click: () => {
    show(rest);
    button.remove();
    list.tabIndex = -1;
    list.focus();
  } }, `Show ${rest.length.toLocaleString("en")} more`);
  return make("div", {}, list, button);
}
