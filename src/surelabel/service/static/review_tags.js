// The field that adds a tag by its name: a combobox with the labels that match.

import { byId, make } from "./dom.js";

const MOST = 8;

/** Return the labels that match what was typed: those that begin with it, then those with a word that does, then others. */
export function matches(typed, labels, most = MOST) {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return [];
  const rank = (label) => {
    const name = label.toLowerCase();
    if (name === wanted) return 0;
    if (name.startsWith(wanted)) return 1;
    if (name.split(/[\s\-_/.]+/).some((word) => word.startsWith(wanted))) return 2;
    return name.includes(wanted) ? 3 : 4;
  };
  return labels.map((label) => [rank(label), label]).filter(([place]) => place < 4)
    .sort((a, b) => a[0] - b[0] || a[1].length - b[1].length || (a[1] < b[1] ? -1 : 1)).slice(0, most).map(([, label]) => label);
}

export class TagField {
  constructor({ labels, add, accept, removeLast, say, leave }) {
    Object.assign(this, { labels, add, accept, removeLast, say, leave, shown: [], at: 0 });
    this.input = byId("tag");
    this.list = byId("tag-list");
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.hide());
  }

  /** Begin to type, with what was typed already. */
  focus(typed = "") {
    this.input.focus();
    this.input.value = typed;
    this.update();
  }

  clear() {
    this.input.value = "";
    this.hide();
  }

  hide() {
    this.shown = [];
    this.list.replaceChildren();
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  update() {
    this.shown = matches(this.input.value, this.labels());
    this.at = 0;
    if (this.shown.length === 0) {
      this.hide();
      if (this.input.value.trim()) this.say("No tag has this name.");
      return;
    }
    this.list.replaceChildren(...this.shown.map((label, i) => make("li", {
      id: `tag-${i}`, role: "option", dir: "auto", "aria-selected": String(i === 0), mousedown: (event) => { event.preventDefault(); this.take(label); },
    }, label)));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === this.at)));
    this.input.setAttribute("aria-activedescendant", `tag-${this.at}`);
  }

  take(label) {
    this.clear();
    this.add(label);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowDown: () => { this.at = (this.at + 1) % Math.max(1, this.shown.length); this.mark(); },
      ArrowUp: () => { this.at = (this.at - 1 + this.shown.length) % Math.max(1, this.shown.length); this.mark(); },
      Enter: () => {
        if (this.shown.length > 0) this.take(this.shown[this.at]);
        else if (this.input.value.trim() === "") this.accept();
        else this.say(`There is no tag ${this.input.value.trim()}.`);
      },
      Escape: () => { this.clear(); this.leave(); },
      Backspace: this.input.value === "" ? () => this.removeLast() : null,
    }[event.key];
    if (!act || (event.key.startsWith("Arrow") && this.shown.length === 0)) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
