// The field for tags: every letter and digit types. Names are found by any part, alternative names too.

import { byId, make } from "./client.js";

const MOST = 12;
const fold = (name) => name.normalize("NFKD").replace(/\p{Mark}/gu, "").toLowerCase().trim();

/** Return how well a name fits what was typed, 0 best, null if it does not. */
function rank(typed, folded, name) {
  if (name.raw === typed) return 0;
  if (name.folded === folded) return 1;
  if (name.folded.startsWith(folded)) return 2;
  if (name.folded.includes(` ${folded}`)) return 3;
  return name.folded.includes(folded) ? 4 : null;
}

export class TagField {
  /** `add` is called with a label, `save` at Enter in the empty field, `leave` at an arrow up in it. */
  constructor({ add, save, leave }) {
    Object.assign(this, { add, save, leave, labels: [], shown: [], position: 0 });
    this.input = byId("tag");
    this.list = byId("tag-list");
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.hide());
  }

  setLabels(labels) {
    const named = (raw) => ({ raw, folded: fold(raw) });
    this.labels = labels.map(({ name, alternatives, broader = [] }) => ({ label: name, name: named(name), alternatives: alternatives.map(named), broader }));
  }

  clear() {
    this.input.value = "";
    this.hint("");
    this.hide();
  }

  focus() {
    this.input.focus();
  }

  hint(words) {
    byId("tag-hint").textContent = words;
  }

  matches(typed) {
    const folded = fold(typed);
    if (folded === "") return [];
    const found = [];
    for (const { label, name, alternatives, broader } of this.labels) {
      let best = { label, broader, rank: rank(typed, folded, name), by: null };
      for (const other of alternatives) {
        const own = rank(typed, folded, other);
        if (own !== null && (best.rank === null || own + 0.5 < best.rank)) best = { label, broader, rank: own + 0.5, by: other.raw };
      }
      if (best.rank !== null) found.push(best);
    }
    return found.sort((a, b) => a.rank - b.rank || a.label.length - b.label.length || a.label.localeCompare(b.label)).slice(0, MOST);
  }

  update() {
    this.shown = this.matches(this.input.value);
    this.position = 0;
    const typed = this.input.value.trim();
    const advice = /^[1-9]$/.test(typed) ? ` Alt ${typed} ticks a tag by its number.` : "";
    this.hint(this.shown.length || !typed ? "" : `No tag has this name.${advice}`);
    if (this.shown.length === 0) {
      this.hide();
      return;
    }
    this.list.replaceChildren(...this.shown.map(({ label, broader, by }, i) => make("li", {
      id: `option-${i}`, role: "option", dir: "auto", mousedown: (event) => { event.preventDefault(); this.take(label); },
    }, label, make("span", { class: "faint" }, by === null ? "" : ` ${by}`, ...broader.map((above) => ` < ${above}`)))));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark();
  }

  hide() {
    this.shown = [];
    this.list.hidden = true;
    this.list.replaceChildren();
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  mark() {
    [...this.list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === this.position)));
    this.list.children[this.position].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `option-${this.position}`);
  }

  take(label) {
    this.clear();
    this.add(label);
  }

  /** Take what is typed or marked. Returns whether the field is empty then. */
  finish() {
    if (this.shown.length === 0) this.update();
    if (this.shown.length > 0) this.take(this.shown[this.position].label);
    return this.input.value.trim() === "";
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    const isEmpty = this.input.value.trim() === "";
    if (event.key === "Enter") {
      event.preventDefault();
      if (isEmpty) this.save();
      else this.finish();
    } else if (this.shown.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.position = (this.position + (event.key === "ArrowDown" ? 1 : -1) + this.shown.length) % this.shown.length;
      this.mark();
    } else if (isEmpty && event.key === "ArrowUp") {
      event.preventDefault();
      this.leave();
    } else if (event.key === "Escape") {
      this.clear();
    }
  }
}
