// The review: a text, its tags as toggles, and a field for any other tag.

import { Problem, announce, byId, hideProblem, insertCard, make, send, showMarked, showProblem } from "./client.js";
import { Outbox } from "./review_outbox.js";
import { showLearning } from "./review_learning.js";
import { TagField } from "./review_tags.js";

const AHEAD = 5;
const QUEUES = [...document.querySelectorAll("[data-queue]")].map((tab) => tab.dataset.queue);
const n = (number) => number.toLocaleString("en");
const post = async (path, body) => (await send(`v1/review/${path}`, body)).json();

const state = { reviewer: "", queue: QUEUES[0], queues: {}, texts: [], started: 0, lastKey: null, sent: new Map(), drafts: new Map(), isMarked: -1, isEmptyMeant: false, isShown: false, counted: 0, loads: 0 };
const current = () => state.texts[0];
const buttons = () => [...byId("card").querySelectorAll(".tag")];
const chosen = () => buttons().filter((tag) => tag.getAttribute("aria-pressed") === "true").map((tag) => tag.dataset.label);

/** Do what may be refused; a refusal is shown and changes nothing. */
async function attempt(work) {
  try {
    const result = await work();
    hideProblem();
    return result;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    showProblem(problem.message, () => attempt(work));
    return null;
  }
}

const field = new TagField({ add: addTag, save, leave: () => buttons().at(-1)?.focus() });

const outbox = new Outbox({
  saved(decision, answer) {
    state.lastKey = decision.key;
    byId("unsaved").hidden = true;
    if (outbox.pending.length > 0) return;
    showCounts(answer.queues);
    if (!current()) load(state.queue);
  },
  refused(decision, problem) {
    byId("unsaved").hidden = true;
    const text = state.sent.get(decision.number)?.text;
    state.sent.delete(decision.number);
    if (text) {
      if (current()) state.drafts.set(current().number, chosen());
      state.texts = [text, ...state.texts.filter((other) => other.number !== text.number)];
      show(decision.labels ?? []);
    }
    const labels = decision.labels === null ? "skip" : decision.labels.join(", ") || "no tag";
    showProblem(`Not saved (${labels}): ${problem.message}`, () => load(state.queue));
  },
  waiting(problem) {
    const { length } = outbox.pending;
    byId("unsaved").textContent = `${length} ${length === 1 ? "decision is" : "decisions are"} not saved yet. ${problem.message} Sent again by itself.`;
    byId("unsaved").hidden = false;
  },
});

// Texts

/** Lease texts of a queue and show the first. The text that is shown stays until then, and cannot be decided. */
async function load(queue) {
  state.loads += 1;
  const number = state.loads;
  state.isShown = false;
  const answer = await attempt(() => post("lease", { reviewer: state.reviewer, queue, n: AHEAD }));
  if (number !== state.loads) return;
  if (!answer) {
    state.isShown = Boolean(current());
    return;
  }
  state.queue = queue;
  const pending = new Set(outbox.pending.map((decision) => decision.number));
  state.texts = answer.texts.filter((text) => !pending.has(text.number));
  showCounts(answer.queues);
  show();
}

/** Lease more texts while there are some left to show; leasing also renews what is leased. */
async function fetchAhead() {
  if (!state.isShown) return;
  const { queue } = state;
  const before = state.counted;
  const wanted = Math.max(AHEAD, state.texts.length);
  // In the background: a failure is tried again later, and success must not hide what was refused meanwhile.
  const answer = await post("lease", { reviewer: state.reviewer, queue, n: wanted }).catch(() => null);
  if (!answer || queue !== state.queue) return;
  // What was decided meanwhile may have been leased before.
  const known = new Set([...state.texts.map((text) => text.number), ...state.sent.keys()]);
  state.texts.push(...answer.texts.filter((text) => !known.has(text.number)));
  if (before === state.counted && outbox.pending.length === 0) showCounts(answer.queues);
  if (!state.isShown && current()) show();
}

/** Show the first text; `labels` are ticked instead of those that the card ticks. */
function show(labels = state.drafts.get(current()?.number) ?? null) {
  const text = current();
  state.drafts.delete(text?.number);
  byId("work").hidden = !text;
  byId("empty").hidden = Boolean(text);
  state.isShown = Boolean(text);
  if (!text) {
    showEmpty();
    return;
  }
  byId("text-id").textContent = text.id;
  showMarked(byId("text-body"), text.text);
  byId("text-body").scrollTop = 0;
  insertCard(byId("card"), text.card);
  for (const tag of buttons()) tag.addEventListener("click", () => toggle(tag));
  number();
  if (labels !== null) {
    for (const tag of buttons()) tag.setAttribute("aria-pressed", String(labels.includes(tag.dataset.label)));
    labels.forEach(addTag);
  }
  state.started = performance.now();
  state.isMarked = -1;
  state.isEmptyMeant = false;
  field.clear();
  field.focus();
  announce(`${byId("card").querySelector("h2").textContent}. Text ${text.id}. ${chosen().length} tags ticked.`);
}

/** Show counts; what was counted before a later decision must not replace them. */
function showCounts(queues) {
  state.counted += 1;
  state.queues = queues;
  for (const queue of QUEUES) {
    const tab = byId(`tab-${queue}`);
    const isChosen = queue === state.queue;
    tab.querySelector("b").textContent = n(queues[queue].waiting);
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  const { waiting, decided } = queues[state.queue];
  byId("done").max = Math.max(1, waiting + decided);
  byId("done").value = decided;
  byId("done-words").textContent = `${n(decided)} of ${n(waiting + decided)} decided`;
}

function showEmpty() {
  const { waiting } = state.queues[state.queue];
  const next = QUEUES.find((queue) => queue !== "filed" && state.queues[queue].waiting > state.queues[queue].leased);
  byId("empty-text").textContent = waiting > 0 ? `Other reviewers have the last ${n(waiting)}.` : "Nothing is pending here.";
  byId("next-queue").hidden = !next;
  byId("next-queue").textContent = next ? `Go to ${byId(`tab-${next}`).dataset.name}` : "";
  byId("next-queue").onclick = () => load(next);
  (next ? byId("next-queue") : byId("empty")).focus();
  announce(byId("empty-text").textContent);
}

// Tags

function toggle(tag) {
  const isTicked = tag.getAttribute("aria-pressed") !== "true";
  tag.setAttribute("aria-pressed", String(isTicked));
  announce(`${tag.dataset.label} ${isTicked ? "ticked" : "not ticked"}.`);
}

/** Tick a tag, which becomes a toggle if it was none. */
function addTag(label) {
  let tag = buttons().find((other) => other.dataset.label === label);
  if (!tag) {
    tag = make("button", { type: "button", class: "tag", dir: "auto", "data-label": label }, label);
    tag.addEventListener("click", () => toggle(tag));
    byId("card").querySelector(".tags").append(make("li", {}, tag));
    number();
  }
  tag.setAttribute("aria-pressed", "true");
  announce(`${label} ticked.`);
}

/** Number the first nine toggles for Alt and a digit. */
function number() {
  buttons().forEach((tag, i) => (i < 9 ? tag.setAttribute("data-digit", String(i + 1)) : null));
}

/** Mark the words that speak for the next tag, unless the text is to be tagged without help. */
async function markWords() {
  const tags = buttons();
  const text = current();
  if (!text || text.queue === "check" || tags.length === 0) return;
  state.isMarked = (state.isMarked + 1) % tags.length;
  const { label } = tags[state.isMarked].dataset;
  const answer = await attempt(async () => (await send("v1/words", { text: text.text, label })).json());
  if (!answer || current() !== text) return;
  showMarked(byId("text-body"), text.text, answer.words);
  announce(`${answer.words.length} words speak for ${label}.`);
}

// Decisions

function decide(labels) {
  const text = current();
  if (!text || !state.isShown) return;
  const seconds = Math.round((performance.now() - state.started) / 100) / 10;
  state.sent.set(text.number, { text, labels });
  state.texts.shift();
  outbox.put({ number: text.number, reviewer: state.reviewer, labels, seconds });
  if (current()) {
    show();
    if (state.texts.length <= 2) fetchAhead();
  } else {
    // The next text comes with what is on its way; nothing can be decided until it is shown.
    state.isShown = false;
    byId("work").hidden = true;
  }
}

function save() {
  if (!field.finish()) return;
  const labels = chosen();
  if (labels.length === 0 && !state.isEmptyMeant) {
    state.isEmptyMeant = true;
    field.hint("No tag is ticked. Save again if none fits.");
    return;
  }
  decide(labels);
}

async function undo() {
  if (outbox.pending.length > 0) {
    announce("The last decision is still being saved.");
    return;
  }
  const key = state.lastKey;
  const answer = await attempt(() => post("undo", key ? { reviewer: state.reviewer, key } : { reviewer: state.reviewer }));
  if (!answer) return;
  state.lastKey = null;
  if (!answer.text) {
    announce("There is nothing to undo.");
    return;
  }
  const { text } = answer;
  if (text.queue !== state.queue) state.texts = [];
  state.queue = text.queue;
  state.texts = [text, ...state.texts.filter((other) => other.number !== text.number)];
  showCounts(answer.queues);
  const { labels = null } = state.sent.get(text.number) ?? {};
  state.sent.delete(text.number);
  show(labels);
}

// Keys: letters and digits type; commands are Enter, Tab, arrows, and Alt with a letter or a digit.

const commands = { KeyS: () => decide(null), KeyU: undo, KeyW: markWords, KeyQ: () => load(QUEUES[(QUEUES.indexOf(state.queue) + 1) % QUEUES.length]) };

document.addEventListener("keydown", (event) => {
  if (byId("review").hidden || event.metaKey || event.isComposing) return;
  const { target } = event;
  if (event.altKey && !event.ctrlKey && !event.getModifierState("AltGraph")) {
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
    const tag = digit ? buttons()[Number(digit[1]) - 1] : null;
    if (digit || commands[event.code]) event.preventDefault();
    if (tag) toggle(tag);
    else commands[event.code]?.();
    return;
  }
  if (event.ctrlKey || event.altKey) return;
  const isField = target.matches("input, textarea, select");
  if (target.matches(".tag")) {
    const tags = buttons();
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) tags[(tags.indexOf(target) + step + tags.length) % tags.length].focus();
    else if (event.key === "ArrowDown") field.focus();
    else if (/^[1-9]$/.test(event.key) && tags[Number(event.key) - 1]) toggle(tags[Number(event.key) - 1]);
    else if (event.key.length === 1 && event.key !== " ") field.focus();
  } else if (target.matches("[role=tab]") && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
    const step = event.key === "ArrowRight" ? 1 : -1;
    const next = QUEUES[(QUEUES.indexOf(target.dataset.queue) + step + QUEUES.length) % QUEUES.length];
    byId(`tab-${next}`).focus();
  } else if (!isField && event.key.length === 1 && event.key !== " ") {
    field.focus();
  }
});

byId("save").addEventListener("click", save);
byId("skip").addEventListener("click", () => decide(null));
byId("undo").addEventListener("click", undo);
for (const queue of QUEUES) {
  byId(`tab-${queue}`).addEventListener("click", () => (queue === state.queue && state.isShown ? field.focus() : load(queue)));
}

byId("summary").addEventListener("toggle", async () => {
  if (!byId("summary").open) return;
  const figures = await attempt(async () => (await send("v1/review/summary")).json());
  if (!figures) return;
  const { accepted, agreement } = figures;
  const share = ({ n_hits: hits, n_cases: cases }) => `${n(hits)} of ${n(cases)}`;
  const lines = [`Decided: ${n(figures.n_decided)} (${Object.entries(figures.by_reviewer).map(([name, count]) => `${name} ${n(count)}`).join(", ") || "nobody"}).`];
  if (figures.median_seconds !== null) lines.push(`Median time: ${figures.median_seconds.toFixed(1)} s.`);
  if (accepted.n_cases > 0) lines.push(`Best guess accepted: ${share(accepted)}.`);
  if (agreement.n_cases > 0) lines.push(`Blind check: best guess right for ${share(agreement)}.`);
  byId("figures").replaceChildren(...lines.map((line) => make("p", {}, line)));
});

showLearning(attempt);

// The beginning

async function begin(name) {
  state.reviewer = name;
  localStorage.setItem("surelabel-reviewer", name);
  byId("reviewer").textContent = name;
  byId("name-form").hidden = true;
  byId("review").hidden = false;
  const known = await attempt(async () => (await send("v1/review/labels")).json());
  if (!known) return;
  field.setLabels(known.labels);
  const { queues, lease_seconds: seconds } = await (await send("v1/review")).json();
  outbox.send();
  clearInterval(state.renewing);
  state.renewing = setInterval(fetchAhead, 1000 * Math.max(5, seconds / 3));
  await load(QUEUES.find((queue) => queues[queue].waiting > queues[queue].leased) ?? QUEUES[0]);
}

byId("name-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("name").value.trim();
  if (name) attempt(() => begin(name));
});
byId("reviewer").addEventListener("click", () => {
  byId("name").value = state.reviewer;
  byId("name-form").hidden = false;
  byId("review").hidden = true;
  byId("name").focus();
});

const before = localStorage.getItem("surelabel-reviewer");
if (before) attempt(() => begin(before));
else {
  byId("name-form").hidden = false;
  byId("name").focus();
}
