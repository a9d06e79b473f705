// Showing the panes of a review. What is shown depends on its arguments alone.

import { byId, make } from "./dom.js";
import { MOST_TAGS, percent, phrase, share } from "./words.js";

export const QUEUES = ["choose", "read", "check", "filed"];
export const NAMES = { choose: "Choose", read: "Read", check: "Check", filed: "Filed" };
const ABOUT = {
  choose: "A short list is plausible: pick one.",
  read: "The list is too long, or the text is unusual: read it.",
  check: "Drawn at random from all texts. Tag it without help: that keeps the figures honest.",
  filed: "Filed by the model. Look and correct if you like.",
};
const n = (number) => number.toLocaleString("en");
const texts = (number) => `${n(number)} ${number === 1 ? "text" : "texts"}`;
const percentage = (value) => `${(100 * value).toFixed(1)} %`;

/** Put the counts on the tabs. */
export function showCounts(queues, chosen) {
  for (const queue of QUEUES) {
    const tab = byId(`tab-${queue}`);
    const waiting = queues?.[queue].waiting ?? 0;
    tab.setAttribute("aria-selected", String(queue === chosen));
    tab.tabIndex = queue === chosen ? 0 : -1;
    tab.replaceChildren(NAMES[queue], " ", make("b", { class: "count" }, n(waiting)), make("span", { class: "visually-hidden" }, queue === "filed" ? " filed" : " waiting"));
  }
  byId("panes").setAttribute("aria-labelledby", `tab-${chosen}`);
}

/** List the texts that the reviewer holds. */
export function showList(held, at, choose) {
  byId("texts").replaceChildren(...held.map((text, i) => make("li", {}, make("button", {
    type: "button", dir: "auto", "aria-current": i === at ? "true" : false, click: () => choose(i),
  }, make("span", { class: "faint" }, `${text.id} `), text.text.slice(0, 90)))));
}

/** Show a text, with the words that speak for a label marked. */
export function showText(text, words) {
  const letters = Array.from(text.text);
  const parts = [];
  let done = 0;
  const strongest = Math.max(0, ...(words?.words ?? []).map((word) => word.weight));
  for (const word of words?.words ?? []) {
    if (word.start < done) continue;
    parts.push(letters.slice(done, word.start).join(""));
    const strength = word.weight > strongest / 2 ? "strong" : word.weight > strongest / 5 ? "middle" : "weak";
    parts.push(make("mark", { class: strength }, letters.slice(word.start, word.end).join("")));
    done = word.end;
  }
  parts.push(letters.slice(done).join(""));
  byId("text").replaceChildren(...parts);
  byId("words-for").replaceChildren(...(words ? ["Marked: words that speak for ", make("b", { dir: "auto" }, words.label), words.words.length === 0 ? " (none)." : "."] : []));
}

/** Say which text it is, and why it is here. */
export function showTitle(text) {
  byId("text-title").textContent = `Text ${text.id}`;
  byId("reason").textContent = text.offer?.reason || ABOUT[text.queue];
  byId("reason").className = text.offer?.unfamiliar ? "reason warning" : "reason faint";
}

/** Show the tags that the text would end with. */
export function showChosen(labels, remove) {
  const none = make("li", { class: "none" }, "no tag yet");
  byId("chosen").replaceChildren(...(labels.length === 0 ? [none] : labels.map((label) => make("li", { dir: "auto" }, label,
    make("button", { type: "button", class: "remove", "aria-label": `Remove ${label}`, click: () => remove(label) }, "×")))));
}

/** Show the label-sets to pick from. */
export function showOptions(offer, pick) {
  byId("options-part").hidden = !offer;
  if (!offer) return;
  byId("options-title").textContent = offer.options.length === 1 ? "Best guess" : "Plausible label-sets";
  byId("options").replaceChildren(...offer.options.map((option, i) => make("li", {}, make("button", { type: "button", class: "option", click: () => pick(i) },
    make("kbd", { "aria-hidden": "true" }, String(i + 1)), make("span", { class: "visually-hidden" }, `Pick ${i + 1}: `),
    make("span", { class: "names", dir: "auto" }, phrase(option.labels)),
    make("span", { class: "p faint" }, make("span", { class: "visually-hidden" }, ", p-value "), share(option.p_value))))));
}

/** Show the tags to consider, most probable first; pressed ones are chosen. */
export function showConsidered(offer, labels, toggle) {
  const tags = offer?.consider ?? [];
  byId("consider-part").hidden = tags.length === 0;
  const isLong = offer?.n_considered > MOST_TAGS;
  byId("consider-title").textContent = isLong ? `Tags to consider: a long list, the ${MOST_TAGS} most probable of ${n(offer.n_considered)}` : "Tags to consider";
  byId("consider").replaceChildren(...tags.map((label) => make("li", {}, make("button", {
    type: "button", dir: "auto", class: "toggle", "aria-pressed": String(labels.includes(label)), click: () => toggle(label),
  }, label))));
}

/** Say that a queue is empty, and where there is more. */
export function showEmpty(queue, queues, go) {
  const counts = queues[queue];
  const next = QUEUES.slice(0, 3).find((other) => other !== queue && queues[other].waiting > queues[other].leased);
  const others = counts.waiting > 0 ? ` ${texts(counts.waiting)} ${counts.waiting === 1 ? "is" : "are"} with other reviewers.` : "";
  byId("empty").replaceChildren(
    make("h2", { id: "empty-title", tabindex: "-1" }, `Nothing waits for you in ${NAMES[queue]}`), make("p", {}, `${n(counts.decided)} decided.${others}`),
    make("div", { class: "actions" },
      next ? make("button", { type: "button", class: "primary", id: "go-on", click: () => go(next) }, `Go to ${NAMES[next]} (${n(queues[next].waiting)})`) : null,
      make("button", { type: "button", id: next ? null : "go-on", class: next ? "" : "primary", click: () => go("summary") }, "Summary and export")));
}

const figure = (name, value, why) => make("div", {}, make("dt", {}, name), make("dd", {}, make("b", {}, value), why && make("p", {}, why)));

/** Show what the blind check says about the model. */
export function showBlind(state, { update, use }) {
  const { blind, calibration } = state;
  const rows = [figure("Checked", texts(blind.n_texts), `${percent(state.check_share)} of all texts are drawn, before the model is asked.`)];
  if (blind.n_texts > 0) {
    rows.push(figure("Wrong among filed", blind.n_filed === 0 ? "–" : `${n(blind.n_filed_wrong)} of ${n(blind.n_filed)}`,
      blind.n_filed === 0 ? "None of the checked texts would have been filed yet." : `At most ${percentage(blind.filed_wrong_bound)} are wrong, with 95 % assurance.`));
    rows.push(figure("Missed by the list", `${n(blind.n_missed)} of ${n(blind.n_texts)}`, `${percentage(blind.error)}; asked for ${percent(state.significance)}.`));
    rows.push(figure("Best guess wrong", `${n(blind.n_guess_wrong)} of ${n(blind.n_texts)}`));
  }
  const enough = blind.n_texts >= calibration.needed;
  byId("blind").replaceChildren(make("dl", { class: "measures" }, ...rows), make("p", { class: "hint" },
    enough ? "There are enough checked texts for a new calibration. The model in use stays until you switch."
      : `A new calibration needs ${n(calibration.needed)} checked texts: ${n(calibration.needed - blind.n_texts)} more.`),
  make("div", { class: "actions" }, make("button", { type: "button", id: "update-calibration", disabled: !enough, click: update }, "Update calibration")));
  if (calibration.update) byId("blind").append(comparison(calibration.update, use));
}

function comparison(update, use) {
  const size = (value) => (value < 1e6 ? n(Number(value.toPrecision(3))) : value.toExponential(1));
  const row = (name, show) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "n" }, show(update.before)), make("td", { class: "n" }, show(update.after)));
  return make("section", { "aria-labelledby": "update-title" },
    make("h3", { id: "update-title" }, `A new calibration from ${n(update.n_texts)} checked texts`),
    make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "On the checked texts"), make("th", { scope: "col", class: "n" }, "in use"), make("th", { scope: "col", class: "n" }, "new"))),
      make("tbody", {}, row(`Missed (asked for ${percent(update.significance)})`, (figures) => percentage(figures.error)),
        row("Plausible label-sets, median", (figures) => size(figures.median_size)),
        row("Plausible label-sets, mean", (figures) => size(figures.mean_size)),
        row("Filed without a person", (figures) => percentage(figures.filed)),
        row("Wrong among these", (figures) => (figures.filed_wrong === null ? "–" : percentage(figures.filed_wrong))))),
    make("p", { class: "hint" }, `The new column is measured on texts that each calibration has not seen.${update.folder ? ` The new model is in ${update.folder}.` : ""}`),
    make("div", { class: "actions" }, make("button", { type: "button", class: "primary", id: "switch", click: () => use(update.model) }, "Use the new model")));
}

/** Show what the work was. */
export function showClosing(summary, queues, save) {
  const left = QUEUES.slice(0, 3).reduce((sum, queue) => sum + queues[queue].waiting, 0);
  const corrected = summary.corrected.map(([label, added, removed]) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, label), make("td", { class: "n" }, n(added)), make("td", { class: "n" }, n(removed))));
  byId("closing").replaceChildren(
    make("h2", { id: "closing-title", tabindex: "-1" }, left === 0 ? "All done" : `${texts(left)} still wait`),
    make("dl", { class: "measures" },
      figure("Decided by people", texts(summary.n_decided), Object.entries(summary.by_reviewer).map(([name, count]) => `${name} ${n(count)}`).join(", ")),
      figure("Filed by the model", texts(queues.filed.waiting)),
      figure("Time per text", summary.median_seconds === null ? "–" : `${summary.median_seconds.toFixed(1)} s`, "The median."),
      figure("Agreement with the first suggestion", summary.agreement === null ? "–" : percentage(summary.agreement), summary.agreement === null ? null : `${n(summary.n_agreed)} of ${n(summary.n_offered)} texts with a suggestion.`)),
    corrected.length === 0 ? make("p", { class: "hint" }, "No label was corrected.") : make("table", {}, make("caption", {}, "Most corrected labels"),
      make("thead", {}, make("tr", {}, ...["Label", "added", "removed"].map((name, i) => make("th", { scope: "col", class: i ? "n" : null }, name)))), make("tbody", {}, ...corrected)),
    make("h3", {}, "Export"), make("p", { class: "hint" }, "The columns of your file, with final_labels, decided_by, queue and changed."),
    make("div", { class: "actions" }, ...["csv", "jsonl", "xlsx"].map((kind) => make("button", { type: "button", id: `export-${kind}`, click: () => save(kind) }, kind.toUpperCase()))));
}
