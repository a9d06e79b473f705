// Showing the answer about one text.

import { labelList, make, number } from "./dom.js";
import { MOST_TAGS, VERDICTS, confidenceWords, credibilityWords, isUnlike, percent, share } from "./words.js";

function measure(name, value, [style, words, why]) {
  return make("div", {}, make("dt", {}, name),
    make("dd", {}, make("b", {}, share(value)), " ", words && make("span", { class: `words ${style}` }, words), make("p", {}, why)));
}

function forcedCard(answer, level) {
  return make("section", { class: "card", "aria-labelledby": "forced-title" },
    make("h2", { id: "forced-title" }, "Best guess"),
    labelList(answer.labels, "large", { none: "no labels" }),
    answer.description && make("p", { class: "description" }, `At ${percent(level)} confidence: ${answer.description}.`),
    make("dl", { class: "measures" },
      measure("Confidence", answer.confidence, confidenceWords(answer)),
      measure("Credibility", answer.credibility, credibilityWords(answer))));
}

/** Put the labels that are to be considered first, the most probable of them first. */
function likeliestFirst(labels, consider) {
  const place = new Map(consider.map((label, index) => [label, index]));
  const rank = (label) => place.get(label) ?? consider.length;
  return [...labels].sort((one, other) => rank(one) - rank(other));
}

/** Say what to do with the text, and why: the first thing to read. */
function verdictCard(answer) {
  if (!answer.decision) return null;
  const card = make("section", { class: `card verdict ${answer.decision}`, "aria-labelledby": "verdict-title" },
    make("h2", { id: "verdict-title" }, VERDICTS[answer.decision]), make("p", {}, answer.reason));
  if (answer.decision === "file") card.append(labelList(answer.labels, "large", { none: "no labels" }));
  // Of an unfamiliar text the model's tags are no help.
  if (answer.decision !== "file" && !answer.unfamiliar && answer.consider.length > 0) {
    const n = answer.consider.length;
    const about = answer.decision === "read" && n > MOST_TAGS ? `a long list: the ${MOST_TAGS} most probable of ${n.toLocaleString("en")}` : "the most probable first";
    card.append(make("h3", {}, "Tags to consider ", make("span", {}, about)), labelList(answer.consider, "small", { limit: MOST_TAGS }));
  }
  return card;
}

/** Show what `describe()` draws. The picture is sent by the server; in an image nothing of it can run. */
function pictureCard(answer) {
  if (!answer.picture) return null;
  return make("section", { class: "card", "aria-labelledby": "picture-title" },
    make("h2", { id: "picture-title" }, "The plausible label-sets in a picture"),
    make("p", { class: "hint" }, "Each bar is the share of the plausible label-sets that have the label."),
    make("img", { class: "picture", alt: answer.description ?? "", src: `data:image/svg+xml,${encodeURIComponent(answer.picture)}` }));
}

function unlikeWarning(answer) {
  if (answer.decision || !isUnlike(answer)) return null;
  return make("div", { class: "warning", role: "note" }, make("p", {},
    make("strong", {}, "This text is unlike the texts that the model was calibrated on. "),
    "The guarantee holds for texts like those. Treat the labels as a guess, and have a person read the text."));
}

function sentence(answer, response) {
  const { size } = answer;
  if (size.upper === "0") {
    return make("p", { class: "sentence" }, make("b", {}, "No"), " label-set is plausible, out of ",
      number(response.n_candidates.readable), ".");
  }
  const one = size.upper === "1";
  return make("p", { class: "sentence" }, make("b", {}, number(size.readable)), one ? " label-set is plausible, out of " : " label-sets are plausible, out of ",
    number(response.n_candidates.readable), ".");
}

function hint(answer, response, model) {
  if (answer.size.upper === "0") {
    return `The best guess has a p-value of ${share(answer.credibility)}; at this confidence it needs more than ${response.significance}. A higher confidence makes more label-sets plausible.`;
  }
  // Not so at equality, whatever the last digits of the two numbers are.
  if (Number(response.significance) < model.smallest_p_value * (1 - 1e-9)) {
    return `${model.n_calibration.toLocaleString("en")} calibration texts are too few for this confidence: nothing can be ruled out. Choose a lower confidence.`;
  }
  return null;
}

function plausibleCard(answer, response, model, level) {
  const about = hint(answer, response, model);
  const card = make("section", { class: "card plausible", "aria-labelledby": "plausible-title" },
    make("h2", { id: "plausible-title" }, `At ${percent(level)} confidence`), sentence(answer, response),
    about && make("p", { class: "hint" }, about));
  if (answer.size.upper === "0") return card;
  card.append(
    make("h3", {}, "Certain labels ", make("span", {}, "in all of them")), labelList(answer.certain, "certain"),
    make("h3", {}, "Open labels ", make("span", {}, "in some of them")), labelList(likeliestFirst(answer.open, answer.consider), "open"));
  if (answer.n_more_open > 0) {
    card.append(make("p", { class: "hint" }, `So are ${answer.n_more_open.toLocaleString("en")} labels that are not listed here.`));
  }
  return card;
}

/** Draw a p-value and the limit, on a scale whose end is `largest`. */
function bar(pValue, significance, largest) {
  const filled = make("span");
  filled.style.width = `${(100 * pValue) / largest}%`;
  const mark = make("i");
  mark.style.left = `${(100 * significance) / largest}%`;
  return make("div", { class: "bar", "aria-hidden": "true" }, filled, mark);
}

function topCard(answer, response) {
  if (answer.top.length === 0) return null;
  const significance = Number(response.significance);
  const largest = Math.max(...answer.top.map((each) => each.p_value), significance);
  const items = answer.top.map((each) => make("li", {},
    labelList(each.labels, "small", { none: "no labels" }), bar(each.p_value, significance, largest),
    make("span", { class: "p" }, make("span", { class: "visually-hidden" }, "p-value "), share(each.p_value))));
  return make("section", { class: "card", "aria-labelledby": "top-title" },
    make("h2", { id: "top-title" }, answer.size.upper === String(answer.top.length) ? "Plausible label-sets" : "Most plausible label-sets"),
    make("p", { class: "hint" }, `With their p-values; the longest bar is ${share(largest)}. The line through all bars is the limit, ${response.significance}.`),
    make("ol", { class: "top" }, ...items));
}

/** Put the answer about one text into an element, in place of what is there. */
export function showAnswer(element, response, model, level) {
  const answer = response.answers[0];
  element.replaceChildren(...[
    verdictCard(answer), unlikeWarning(answer), forcedCard(answer, level), plausibleCard(answer, response, model, level), topCard(answer, response),
    pictureCard(answer),
  ].filter(Boolean));
}
