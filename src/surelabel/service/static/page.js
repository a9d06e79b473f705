// The page: what happens when something is entered, moved or pressed.

import { showAnswer } from "./answer.js";
import { getModel, predict } from "./client.js";
import { byId, make, number } from "./dom.js";
import { calm, complain, listenForRetry } from "./problem.js";
import { TableMode } from "./table.js";
import { endAsking, listenForToken } from "./token.js";
import { DEFAULT_LEVEL, LEVELS, percent, placeOf, promise, spoken } from "./words.js";

const TOP = 10;
const DEBOUNCE = 200;
let model = null;
let asking = null;
let waiting = 0;
let moved = false;

const welcome = [...byId("answer").children];
const level = () => LEVELS[Number(byId("confidence").value)];
const group = () => byId("group").value;
const say = (text) => { byId("status").textContent = text; };

/** Learn about the model, and show what depends on it. */
async function begin() {
  try {
    model = await getModel();
  } catch (problem) {
    complain(problem, begin);
    return;
  }
  calm();
  if (endAsking()) byId("text").focus();
  byId("model-line").replaceChildren(
    `${model.name} · ${model.labels.length.toLocaleString("en")} labels · ${model.classifier} classifier · calibrated on ${model.n_calibration.toLocaleString("en")} texts · `,
    number(model.n_candidates.readable), " possible label-sets");
  byId("report-link").hidden = !model.has_report;
  byId("review-link").hidden = !model.has_review;
  if (!moved) byId("confidence").value = String(placeOf(model.level));
  showLevel();
  byId("group-choice").hidden = !model.groups;
  byId("group-label").textContent = `Texts of which ${model.group_column ?? "group"}?`;
  if (byId("group").options.length === 0) byId("group").replaceChildren(...(model.groups ?? []).map((name) => make("option", { value: name }, name)));
  const examples = model.examples.map((example) => make("button", { type: "button", dir: "auto", title: example.slice(0, 300), click: () => {
    byId("text").value = example;
    countCharacters();
    askNow();
  } }, example.slice(0, 160)));
  byId("examples").replaceChildren(byId("examples-title"), ...examples);
  byId("examples").hidden = examples.length === 0;
}

function countCharacters() {
  const n = byId("text").value.length;
  byId("text-count").textContent = `${n.toLocaleString("en")} ${n === 1 ? "character" : "characters"}`;
}

function showLevel() {
  byId("confidence-shown").textContent = percent(level());
  byId("confidence").setAttribute("aria-valuetext", percent(level()));
  byId("confidence-words").textContent = promise(level(), model?.evaluation);
}

/** Mark the answer as one about an earlier text; without a text show again what stood there at first. */
function outdate() {
  const answer = byId("answer");
  if (byId("text").value.trim() === "") {
    answer.classList.remove("stale");
    answer.replaceChildren(...welcome);
  } else if (byId("forced-title")) {
    answer.classList.add("stale");
  }
}

/** On a narrow page the answer is below what was asked: bring it into view. */
function showResult() {
  if (!matchMedia("(max-width: 56rem)").matches) return;
  const calmly = matchMedia("(prefers-reduced-motion: reduce)").matches;
  byId("result").scrollIntoView({ behavior: calmly ? "auto" : "smooth", block: "start" });
}

/** Ask about the text at the level. The last answer stays until the new one is there. */
async function askNow({ scroll = true } = {}) {
  clearTimeout(waiting);
  asking?.abort();
  const text = byId("text").value;
  if (!model || text.trim() === "") {
    say("Enter a text first.");
    byId("text-problem").textContent = "Enter a text first.";
    byId("text").focus();
    return;
  }
  const mine = new AbortController();
  const asked = level();
  asking = mine;
  byId("answer").setAttribute("aria-busy", "true");
  try {
    const response = await predict([text], asked, { top: TOP, describe: true, group: group() }, mine.signal);
    if (asking !== mine) return;
    calm();
    byId("answer").classList.remove("stale");
    showAnswer(byId("answer"), response, model, asked);
    say(spoken(response.answers[0], asked));
    if (scroll) showResult();
  } catch (problem) {
    if (problem.name !== "AbortError" && asking === mine) complain(problem, () => askNow());
  } finally {
    if (asking === mine) byId("answer").removeAttribute("aria-busy");
  }
}

function chooseTab(chosen) {
  for (const name of ["text", "table"]) {
    const selected = name === chosen;
    byId(`tab-${name}`).setAttribute("aria-selected", String(selected));
    byId(`tab-${name}`).tabIndex = selected ? 0 : -1;
    byId(`panel-${name}`).hidden = !selected;
  }
  byId("answer").hidden = chosen !== "text";
  byId("table-result").hidden = chosen !== "table";
  calm();
}

function listen() {
  byId("panel-text").addEventListener("submit", (event) => {
    event.preventDefault();
    askNow();
  });
  byId("text").addEventListener("input", () => {
    byId("text-problem").textContent = "";
    countCharacters();
    outdate();
  });
  byId("text").addEventListener("paste", () => setTimeout(() => {
    countCharacters();
    if (byId("text").value.trim()) askNow();
  }));
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) askNow();
  });
  byId("clear").addEventListener("click", () => {
    byId("text").value = "";
    countCharacters();
    outdate();
    byId("text").focus();
  });
  byId("confidence").addEventListener("input", () => {
    moved = true;
    showLevel();
    clearTimeout(waiting);
    if (!byId("panel-text").hidden && byId("text").value.trim()) waiting = setTimeout(() => askNow({ scroll: false }), DEBOUNCE);
  });
  byId("group").addEventListener("change", () => {
    if (!byId("panel-text").hidden && byId("text").value.trim()) askNow({ scroll: false });
  });
  listenForRetry("Reload the page and try again.");
  listenForToken(begin);
  for (const tab of ["text", "table"]) {
    const other = tab === "text" ? "table" : "text";
    byId(`tab-${tab}`).addEventListener("click", () => chooseTab(tab));
    byId(`tab-${tab}`).addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      const goal = event.key === "Home" ? "text" : event.key === "End" ? "table" : other;
      chooseTab(goal);
      byId(`tab-${goal}`).focus();
    });
  }
}

byId("confidence").max = String(LEVELS.length - 1);
byId("confidence").value = String(LEVELS.indexOf(DEFAULT_LEVEL));
new TableMode({ model: () => model, level, group, say, complain, calm });
showLevel();
countCharacters();
listen();
begin();
