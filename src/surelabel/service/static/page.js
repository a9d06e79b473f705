// The page: a text, how often the answer may be wrong, and the card that the server renders; and tables.

import { Problem, announce, byId, hideProblem, insertCard, make, problemOf, send, showMarked, showProblem } from "./client.js";

const levels = byId("level").dataset.levels.split(" ");
const percent = (level) => `${Number((100 * Number(level)).toPrecision(3))} %`;
let asked = "";
let latest = null;

const level = () => levels[Number(byId("level").value)];
// Without a level the model answers as it was made.
const asLevel = () => (level() === byId("level").dataset.own ? {} : { level: level() });
const group = () => (byId("group") ? { group: byId("group").value } : {});

async function ask() {
  latest?.abort();
  latest = new AbortController();
  const { signal } = latest;
  const text = asked;
  const result = byId("result");
  result.setAttribute("aria-busy", "true");
  try {
    const response = await send("v1/card", { text, ...asLevel(), ...group() }, signal);
    const card = await response.text();
    if (signal.aborted) return;
    hideProblem();
    insertCard(result, card);
    explainOnClick(result, text);
    const heading = result.querySelector("h2").textContent;
    const tags = [...result.querySelectorAll(".tag")].map((tag) => tag.dataset.label);
    announce([heading, tags.join(", "), result.querySelector(".reason")?.textContent].filter(Boolean).join(". "));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (!(problem instanceof Problem)) throw problem;
    showProblem(problem.message, ask);
  } finally {
    if (!signal.aborted) result.removeAttribute("aria-busy");
  }
}

/** Let each tag show the words that speak for it. */
function explainOnClick(result, text) {
  const tags = result.querySelectorAll(".tag");
  for (const tag of tags) {
    tag.addEventListener("click", async () => {
      const isShown = tag.getAttribute("aria-pressed") === "true";
      result.querySelector(".words")?.remove();
      tags.forEach((other) => other.setAttribute("aria-pressed", "false"));
      if (isShown) return;
      try {
        const { words } = await (await send("v1/words", { text, label: tag.dataset.label })).json();
        const shown = make("p", { class: "words", dir: "auto" });
        showMarked(shown, text, words);
        tag.setAttribute("aria-pressed", "true");
        result.querySelector(".tags").after(shown);
        announce(words.length ? `${words.length} words speak for ${tag.dataset.label}.` : `No single word speaks for ${tag.dataset.label}.`);
      } catch (problem) {
        showProblem(problem.message);
      }
    });
  }
}

function start(text) {
  if (text.trim() === "") return;
  asked = text;
  byId("text").scrollTop = 0;
  ask();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  start(byId("text").value);
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start(byId("text").value);
});
byId("level").addEventListener("input", () => {
  byId("level-shown").textContent = percent(level());
  byId("level").setAttribute("aria-valuetext", percent(level()));
});
byId("level").addEventListener("change", () => { if (asked) ask(); });
byId("group")?.addEventListener("change", () => { if (asked) ask(); });
for (const example of document.querySelectorAll(".example")) {
  example.addEventListener("click", () => {
    byId("text").value = example.textContent;
    start(example.textContent);
  });
}

// A table is sent as it is; the server reads it, and streams the answers back.
let stopping = null;

async function answerTable(file) {
  const isKept = /\.(csv|xlsx|jsonl|parquet)$/i.exec(file.name);
  const kind = isKept ? isKept[1].toLowerCase() : "csv";
  const query = new URLSearchParams({ name: file.name, text: byId("column").value, format: kind, ...asLevel() });
  if (byId("group")) query.set("group", byId("group").value);
  stopping = new AbortController();
  const headers = { "Content-Type": "application/octet-stream" };
  const response = await fetch(`v1/table?${query}`, { method: "POST", headers, body: file, signal: stopping.signal });
  if (!response.ok) throw await problemOf(response);
  const total = Number(response.headers.get("Surelabel-Texts"));
  const parts = [];
  let texts = 0;
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    texts = Math.min(total, texts + part.value.reduce((lines, byte) => lines + (byte === 10), 0));
    byId("progress").max = total;
    byId("progress").value = texts;
    byId("table-status").textContent = `${texts.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  }
  const url = URL.createObjectURL(new Blob(parts));
  const name = `${file.name.replace(/\.[^.]*$/, "")}.answers.${kind}`;
  byId("table-status").replaceChildren(`${total.toLocaleString("en")} texts answered: `, make("a", { href: url, download: name, id: "download" }, name));
  byId("download").click();
}

byId("table-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [file] = byId("file").files;
  if (!file || stopping) return;
  hideProblem();
  byId("table-status").textContent = "Sending …";
  byId("progress").removeAttribute("value");
  for (const id of ["progress", "stop"]) byId(id).hidden = false;
  try {
    await answerTable(file);
  } catch (problem) {
    byId("table-status").textContent = problem.name === "AbortError" ? "Stopped." : "";
    if (problem.name !== "AbortError") showProblem(problem instanceof Problem ? problem.message : "The service stopped in the middle of the table. Nothing was saved.");
  } finally {
    stopping = null;
    for (const id of ["progress", "stop"]) byId(id).hidden = true;
  }
});
byId("stop").addEventListener("click", () => stopping?.abort());
