// A review: queues of texts, worked through by keyboard. Every decision goes to the server at once.

import { Problem, ask, getFile, getModel, send } from "./client.js";
import { byId, make } from "./dom.js";
import { calm, complain, listenForRetry } from "./problem.js";
import { Outbox } from "./review_outbox.js";
import { TagField } from "./review_tags.js";
import { NAMES, QUEUES, showBlind, showChosen, showClosing, showConsidered, showCounts, showEmpty, showList, showOptions, showText, showTitle } from "./review_view.js";
import { askForToken, endAsking, listenForToken } from "./token.js";
import { phrase } from "./words.js";

const HELD = 10;
const LEAST_HELD = 4;
const REFRESH = 10_000;
const RENEW = 60_000;

let model = null;
let state = null;
let queue = "choose";
let held = [];
let at = 0;
let labels = [];
let words = new Map();
// Texts that were decided since the last answer of the server, which may be older than their decisions.
let gone = new Set();
let shownAt = 0;
let wordsOf = null;
let active = false;
let filling = false;
let more = false;
let view = "texts";

const reviewer = () => localStorage.getItem("surelabel-reviewer") ?? "";
const singleKeys = () => byId("single-keys").checked;
const current = () => held[at] ?? null;
const say = (message) => { byId("status").textContent = message; };

const outbox = new Outbox({
  saved: (item, answer) => {
    if (item.path.endsWith("undo")) takeBack(answer.text);
    else if (held.length < LEAST_HELD && view === "texts") fill();
    refreshSoon();
  },
  refused: (item, problem) => {
    complain(problem);
    refreshSoon();
  },
  waiting: (count, problem) => {
    byId("unsaved").hidden = count === 0;
    byId("unsaved").textContent = count === 0 ? "" : `${count} ${count === 1 ? "decision waits" : "decisions wait"} for the server. Nothing is lost; you can go on.`;
    if (problem instanceof Problem && problem.status === 401) askForToken();
  },
});

let refreshing = 0;
function refreshSoon() {
  clearTimeout(refreshing);
  refreshing = setTimeout(refresh, 250);
}

/** Ask for counts and figures; now and then also for texts that others have given back. */
async function refresh(andFill = false) {
  clearTimeout(refreshing);
  try {
    state = await ask("v1/review");
    calm();
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 401) complain(problem);
    refreshing = setTimeout(refresh, REFRESH, true);
    return;
  }
  showCounts(state.queues, queue);
  showBlind(state, { update: updateCalibration, use: useModel });
  if (view === "summary") await showSummary(false);
  refreshing = setTimeout(refresh, REFRESH, true);
  const counts = state.queues[queue];
  if (andFill && view === "texts" && !current() && counts.waiting > counts.leased) fill();
}

/** Hold enough texts to work on; those that were held stay in their places. */
async function fill() {
  if (filling || !reviewer()) {
    more = filling;
    return;
  }
  filling = true;
  more = false;
  try {
    const asked = queue;
    gone = new Set();
    // The server counts those that are decided here and on their way among the texts that are held.
    const n = Math.min(50, HELD + outbox.numbers().size);
    const answer = await send("v1/review/lease", { reviewer: reviewer(), queue: asked, n });
    if (asked !== queue) return;
    const pending = new Set([...outbox.numbers(), ...gone]);
    const own = new Set(held.map((text) => text.number));
    const ours = new Set(answer.texts.map((text) => text.number));
    const now = current()?.number;
    held = [...held.filter((text) => ours.has(text.number)), ...answer.texts.filter((text) => !own.has(text.number) && !pending.has(text.number))];
    const place = held.findIndex((text) => text.number === now);
    filling = false;
    calm();
    if (place >= 0) {
      at = place;
      showList(held, at, move);
    } else {
      show(Math.min(at, Math.max(0, held.length - 1)));
    }
  } catch (problem) {
    filling = false;
    complain(problem, fill);
  } finally {
    filling = false;
    if (more) fill();
  }
}

/** Show one of the held texts, or that there is none. */
async function show(place, { focus = true } = {}) {
  at = place;
  const text = current();
  view = "texts";
  byId("closing").hidden = true;
  byId("empty").hidden = text !== null;
  byId("work").hidden = text === null;
  showList(held, at, move);
  if (!text) {
    if (filling) {
      byId("empty").replaceChildren(make("p", { class: "faint" }, "Fetching texts …"));
      return;
    }
    await refresh();
    if (current() || view !== "texts") return;
    if (state) showEmpty(queue, state.queues, (next) => (next === "summary" ? showSummary() : chooseQueue(next)));
    if (focus) byId("go-on")?.focus();
    say(`Nothing waits for you in ${NAMES[queue]}.`);
    return;
  }
  labels = [...(text.offer?.labels ?? [])];
  shownAt = performance.now();
  wordsOf = null;
  tags.clear();
  showTitle(text);
  showText(text, null);
  showOptions(text.offer, pick);
  changed();
  if (focus) byId("text-title").focus({ preventScroll: false });
  const offered = text.offer ? ` Suggested: ${phrase(text.offer.labels)}.` : "";
  say(`Text ${text.id}. ${byId("reason").textContent}${offered}`);
  if (text.offer) showWords(text.offer.labels[0] ?? text.offer.consider[0]);
}

/** Show what the text would end with. */
function changed() {
  showChosen(labels, (label) => toggle(label));
  showConsidered(current()?.offer, labels, toggle);
}

/** Mark the words that speak for a label. */
async function showWords(label) {
  const text = current();
  if (!label || !text?.offer) return;
  wordsOf = label;
  const key = JSON.stringify([text.number, label, state?.model]);
  try {
    if (!words.has(key)) words.set(key, await ask(`v1/review/words?number=${text.number}&label=${encodeURIComponent(label)}`));
  } catch {
    return; // The text can be read without.
  }
  if (current() === text && wordsOf === label) showText(text, words.get(key));
}

function nextWords() {
  const all = [...new Set([...labels, ...(current()?.offer?.consider ?? [])])];
  if (all.length === 0) return;
  const label = all[(all.indexOf(wordsOf) + 1) % all.length];
  showWords(label);
  say(`Words for ${label} are marked.`);
}

function toggle(label) {
  const has = labels.includes(label);
  labels = has ? labels.filter((other) => other !== label) : [...labels, label];
  changed();
  say(`${label} ${has ? "removed" : "added"}. Tags: ${phrase(labels)}.`);
  if (!has) showWords(label);
}

const same = (one, other) => one.length === other.length && one.every((label) => other.includes(label));

/** Save a decision, and go on to the next text. */
function decide(action, chosen) {
  const text = current();
  if (!text) return;
  active = true;
  const seconds = Math.round(performance.now() - shownAt) / 1000;
  const body = { number: text.number, reviewer: reviewer(), action, seconds };
  outbox.put("v1/review/decisions", chosen === null ? body : { ...body, labels: chosen });
  gone.add(text.number);
  held = held.filter((other) => other !== text);
  if (held.length < LEAST_HELD) fill();
  show(Math.min(at, Math.max(0, held.length - 1)));
}

function accept() {
  const text = current();
  if (!text) return;
  if (labels.length === 0) {
    say("Add a tag first, or say that none fits.");
    tags.focus();
    return;
  }
  const { offer } = text;
  const action = offer && same(labels, offer.labels) ? "accept" : offer?.options.some((option) => same(labels, option.labels)) ? "pick" : "edit";
  decide(action, labels);
}

function pick(place) {
  const option = current()?.offer?.options[place];
  if (option && option.labels.length > 0) decide(same(option.labels, current().offer.labels) ? "accept" : "pick", option.labels);
  else if (option) decide("none", null);
}

function undo() {
  active = true;
  outbox.put("v1/review/undo", { reviewer: reviewer() });
}

/** Show a text whose decision was taken back. */
function takeBack(text) {
  if (!text) {
    say("There is nothing to undo.");
    return;
  }
  if (text.queue !== queue) {
    queue = text.queue;
    held = [];
    showCounts(state?.queues, queue);
  }
  gone.delete(text.number);
  held = [text, ...held.filter((other) => other.number !== text.number)];
  show(0);
  say(`Text ${text.id} is open again.`);
}

function move(place) {
  active = true;
  if (held.length > 0) show((place + held.length) % held.length);
}

async function chooseQueue(name) {
  queue = name;
  held = [];
  at = 0;
  view = "texts";
  showCounts(state?.queues, queue);
  await fill();
}

async function showSummary(focus = true) {
  try {
    const summary = await ask("v1/review/summary");
    if (focus || !state) {
      state = await ask("v1/review");
      showCounts(state.queues, queue);
    }
    if (!focus && view !== "summary") return;
    view = "summary";
    byId("work").hidden = true;
    byId("empty").hidden = true;
    byId("closing").hidden = false;
    if (focus || byId("closing").childElementCount === 0) showClosing(summary, state.queues, save);
    if (focus) byId("closing-title").focus();
  } catch (problem) {
    complain(problem, showSummary);
  }
}

async function save(kind) {
  try {
    const url = URL.createObjectURL(await getFile(`v1/review/export?kind=${kind}`));
    make("a", { href: url, download: `reviewed.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    say(`The export is saved as reviewed.${kind}.`);
  } catch (problem) {
    complain(problem, () => save(kind));
  }
}

async function updateCalibration() {
  byId("update-calibration").disabled = true;
  say("A new calibration is being made.");
  try {
    await ask("v1/review/calibration", { method: "POST" });
    say("The new calibration is ready. Compare it with the one in use.");
  } catch (problem) {
    complain(problem, updateCalibration);
  }
  await refresh();
}

async function useModel(fingerprint) {
  try {
    const answer = await send("v1/review/switch", { model: fingerprint });
    say(`The new model is in use. ${answer.rerouted} waiting texts were answered again.`);
    held = [];
    words = new Map();
    await fill();
  } catch (problem) {
    complain(problem);
  }
  await refresh();
}

const KEYS = {
  j: () => move(at + 1),
  k: () => move(at - 1),
  s: () => decide("skip", null),
  x: () => decide("none", null),
  u: undo,
  w: nextWords,
  "/": () => tags.focus(),
  "[": () => chooseQueue(QUEUES[(QUEUES.indexOf(queue) + 3) % 4]),
  "]": () => chooseQueue(QUEUES[(QUEUES.indexOf(queue) + 1) % 4]),
};

/** Do what a single key means, unless it is typed into a field or presses a button. */
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !model || !reviewer()) return;
  if (event.target.closest("input, textarea, select, summary")) return;
  const onButton = event.target.closest("button, a");
  if (event.key === "Enter" && !onButton && current() && view === "texts") {
    event.preventDefault();
    accept();
    return;
  }
  if (!singleKeys()) return;
  let act = KEYS[event.key];
  if (view !== "texts" && !["[", "]", "u"].includes(event.key)) act = null;
  if (!act && view === "texts" && current() && /^[1-9]$/.test(event.key) && current().offer) act = () => pick(Number(event.key) - 1);
  if (!act && view === "texts" && current() && /^\p{L}$/u.test(event.key)) act = () => tags.focus(event.key);
  if (!act) return;
  event.preventDefault();
  act();
}

const tags = new TagField({
  labels: () => model?.labels ?? [],
  add: toggle,
  accept,
  removeLast: () => { if (labels.length > 0) toggle(labels[labels.length - 1]); },
  say,
  leave: () => byId("text-title").focus(),
});

function askForName() {
  byId("name-form").hidden = false;
  byId("review").hidden = true;
  byId("name").focus();
}

async function begin() {
  try {
    model = await getModel();
  } catch (problem) {
    complain(problem, begin);
    return;
  }
  calm();
  endAsking();
  byId("model-line").textContent = `${model.name} · ${model.labels.length.toLocaleString("en")} labels`;
  byId("report-link").hidden = !model.has_report;
  if (!reviewer()) {
    askForName();
    return;
  }
  byId("name-form").hidden = true;
  byId("review").hidden = false;
  byId("reviewer").textContent = reviewer();
  await outbox.pump();
  await refresh();
  queue = QUEUES.slice(0, 3).find((name) => state?.queues[name].waiting > state?.queues[name].leased) ?? queue;
  await chooseQueue(new URLSearchParams(location.search).get("queue") ?? queue);
}

function listen() {
  document.addEventListener("keydown", key);
  byId("accept").addEventListener("click", accept);
  byId("none").addEventListener("click", () => decide("none", null));
  byId("skip").addEventListener("click", () => decide("skip", null));
  byId("undo").addEventListener("click", undo);
  byId("summary").addEventListener("click", () => showSummary());
  listenForRetry("Reload the page: what you decided is kept.");
  byId("change-name").addEventListener("click", askForName);
  byId("name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.setItem("surelabel-reviewer", byId("name").value.trim().slice(0, 100));
    held = [];
    begin();
  });
  byId("single-keys").checked = localStorage.getItem("surelabel-keys") !== "off";
  byId("single-keys").addEventListener("change", () => localStorage.setItem("surelabel-keys", singleKeys() ? "on" : "off"));
  for (const name of QUEUES) {
    byId(`tab-${name}`).addEventListener("click", () => chooseQueue(name));
    byId(`tab-${name}`).addEventListener("keydown", async (event) => {
      const step = { ArrowRight: 1, ArrowLeft: 3 }[event.key];
      if (!step) return;
      event.preventDefault();
      const goal = QUEUES[(QUEUES.indexOf(name) + step) % 4];
      await chooseQueue(goal);
      byId(`tab-${goal}`).focus();
    });
  }
  listenForToken(begin);
  for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, () => { active = true; });
  setInterval(() => {
    if (active && reviewer()) send("v1/review/renew", { reviewer: reviewer() }).catch(() => {});
    active = false;
  }, RENEW);
}

listen();
begin();
