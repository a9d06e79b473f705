// Table mode: a CSV file in, the same file with answers out.

import { Problem, predict } from "./client.js";
import { parseCsv, readText, writeCsv } from "./csv.js";
import { byId, labelList, make, number } from "./dom.js";
import { isUnlike, percent, share } from "./words.js";

const MOST_BYTES = 50 * 2 ** 20;
const MOST_SHOWN = 50;
const MOST_TEXTS = 64;
const HEADINGS = ["decision", "reason", "labels", "assign", "consider", "confidence", "credibility", "significance", "plausible_at_least", "plausible_at_most", "certain", "open", "more_open", "problem"];
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** What is on the page in table mode. */
export class TableMode {
  /**
   * @param {Object} page
   * @param {() => Object} page.model - the server's description of its model
   * @param {() => string} page.level - the confidence level
   * @param {(text: string) => void} page.say - tell screen readers
   * @param {(problem: Error, again: () => void) => void} page.complain
   * @param {() => void} page.calm - take the last complaint back
   */
  constructor(page) {
    this.page = page;
    this.rows = [];
    this.answers = [];
    byId("file").addEventListener("change", () => this.open(byId("file").files[0]));
    byId("column").addEventListener("change", () => this.begin());
    byId("panel-table").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.rows.length > 0) this.run();
    });
    byId("stop-table").addEventListener("click", () => this.stopping?.abort());
  }

  /** Read a file and offer its columns. */
  async open(file) {
    this.stopping?.abort();
    this.rows = [];
    byId("run-table").disabled = true;
    byId("column-choice").hidden = true;
    byId("table-result").replaceChildren();
    if (!file) return;
    this.page.calm();
    try {
      if (file.size > MOST_BYTES) throw new Problem(0, "large", "The file is larger than 50 MB.", "Use 'surelabel predict' on the command line for it.");
      const { rows, separator } = parseCsv(await readText(file));
      if (rows.length < 2) throw new Problem(0, "empty", "The file has no row below its heading.", "Choose another file.");
      [this.headings, ...this.rows] = rows;
      Object.assign(this, { separator, name: file.name });
    } catch (error) {
      this.page.complain(error instanceof Problem ? error : new Problem(0, "csv", error.message, "Fix the file, or choose another."));
      return;
    }
    this.offerColumns();
    this.begin();
    this.page.say(`${this.rows.length} rows read.`);
  }

  /** Fill the choice of columns; the one with the longest texts is the likeliest. */
  offerColumns() {
    const some = this.rows.slice(0, 100);
    const lengths = this.headings.map((_, k) => some.reduce((sum, row) => sum + (row[k] ?? "").length, 0));
    const named = this.headings.findIndex((heading) => heading.trim().toLowerCase() === "text");
    const likeliest = named >= 0 ? named : lengths.indexOf(Math.max(...lengths));
    byId("column").replaceChildren(...this.headings.map((heading, k) =>
      make("option", { value: String(k), selected: k === likeliest }, heading || `column ${k + 1}`)));
    byId("column-choice").hidden = false;
  }

  /** Forget the answers: the file, the column or the level is another. */
  begin() {
    this.stopping?.abort();
    this.answers = [];
    byId("table-result").replaceChildren();
    byId("run-table").disabled = this.rows.length === 0;
    byId("run-table").textContent = this.rows.length ? `Predict ${this.rows.length.toLocaleString("en")} rows` : "Predict";
  }

  /** Return the next rows that go into one request: not too many, not too long. */
  nextTexts() {
    const { limits } = this.page.model();
    const column = Number(byId("column").value);
    const texts = [];
    let bytes = 0;
    for (let k = this.answers.length; k < this.rows.length && texts.length < Math.min(MOST_TEXTS, limits.max_texts); k += 1) {
      const text = this.rows[k][column] ?? "";
      // In JSON a character takes six bytes at most.
      bytes += 6 * text.length + 16;
      if (texts.length > 0 && bytes > limits.max_body_bytes / 2) break;
      texts.push(text);
    }
    return texts;
  }

  /** Ask for the rows that have no answer yet, request after request. */
  async run() {
    if (this.answers.length === this.rows.length || this.level !== this.page.level()) this.begin();
    this.level = this.page.level();
    this.page.calm();
    const stopping = new AbortController();
    this.stopping = stopping;
    byId("run-table").disabled = true;
    byId("stop-table").hidden = false;
    this.show();
    try {
      while (this.answers.length < this.rows.length) {
        const answered = await this.answer(this.nextTexts(), stopping.signal);
        if (stopping.signal.aborted) break;
        this.answers.push(...answered);
        this.progress();
      }
    } catch (error) {
      if (error.name !== "AbortError") this.page.complain(error, () => this.run());
    } finally {
      if (this.stopping === stopping) this.end();
    }
  }

  /** Return the answers to some texts; one that is too long gets a problem instead. */
  async answer(texts, signal) {
    const most = this.page.model().limits.max_text_chars;
    const fits = texts.map((text) => [...text].length <= most);
    const asked = texts.filter((_, k) => fits[k]);
    const response = asked.length ? await this.patiently(asked, signal) : { answers: [] };
    this.significance = response.significance ?? this.significance ?? "";
    const answers = response.answers[Symbol.iterator]();
    return fits.map((fit) => (fit ? answers.next().value : { problem: `longer than ${most.toLocaleString("en")} characters` }));
  }

  /** Ask; if the server is busy, ask again a little later. */
  async patiently(texts, signal) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await predict(texts, this.level, { top: 1, group: this.page.group() }, signal);
      } catch (error) {
        if (error.status !== 503 || attempt === 5) throw error;
        await pause(1000 * Math.max(error.retryAfter, 1));
        signal.throwIfAborted();
      }
    }
  }

  /** Tidy up after the last request. */
  end() {
    byId("stop-table").hidden = true;
    byId("run-table").disabled = false;
    const done = this.answers.length;
    byId("run-table").textContent = done === 0 || done === this.rows.length ? "Predict again" : "Resume";
    this.show();
    this.page.say(`${done} of ${this.rows.length} rows are answered.`);
  }

  progress() {
    const bar = byId("table-progress");
    if (bar) bar.value = this.answers.length;
    byId("table-done").textContent = this.countWords();
  }

  countWords() {
    return `${this.answers.length.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")} rows answered`;
  }

  /** Show how far it is, the first rows, and the download. */
  show() {
    const running = !byId("stop-table").hidden;
    const counts = ["file", "choose", "read"].map((decision) => [decision, this.answers.filter((answer) => answer.decision === decision).length]);
    const decided = counts.filter(([, n]) => n > 0).map(([decision, n]) => `${decision} ${n.toLocaleString("en")}`).join(", ");
    const unusual = this.answers.filter(isUnlike).length;
    byId("table-result").replaceChildren(make("section", { class: "card answers", "aria-labelledby": "table-title" },
      make("h2", { id: "table-title" }, `Answers at ${percent(this.level)} confidence`),
      make("p", { id: "table-done" }, this.countWords()),
      running ? make("progress", { id: "table-progress", max: this.rows.length, value: this.answers.length, "aria-label": "Rows answered" }) : null,
      !running && decided ? make("p", { id: "table-decided" }, `What to do: ${decided}.`) : null,
      !running && unusual ? make("p", { class: "fair" }, `Unlike the calibration texts: ${unusual.toLocaleString("en")}. Let a person look at these.`) : null,
      !running && this.answers.length ? make("div", { class: "actions" },
        make("button", { id: "download", class: "primary", type: "button", click: () => this.download() }, "Download answers (CSV)")) : null,
      !running && this.answers.length ? this.preview() : null));
  }

  preview() {
    const column = Number(byId("column").value);
    const shown = this.answers.slice(0, MOST_SHOWN);
    const caption = this.answers.length > shown.length ? `The first ${shown.length} rows; the download has all.` : "All rows.";
    const head = [["", "Row"], ["", "Text"], ["", "Decision"], ["", "Best guess"], ["n", "Confidence"], ["n", "Credibility"], ["n", "Plausible"]];
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answers, row by row" }, make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map(([style, name]) => make("th", { scope: "col", class: style }, name)))),
      make("tbody", {}, ...shown.map((answer, k) => previewRow(k, this.rows[k][column] ?? "", answer)))));
  }

  /** Give the file with the answers beside its columns. */
  download() {
    const { labels } = this.page.model();
    const joint = [";", "|", "/", "\t"].find((mark) => !labels.some((label) => label.includes(mark))) ?? ";";
    const width = Math.max(this.headings.length, ...this.rows.map((row) => row.length));
    const padded = (row) => [...row, ...Array(width - row.length).fill("")];
    const rows = this.answers.map((answer, k) => [...padded(this.rows[k]), ...answerCells(answer, this.significance, joint)]);
    const content = writeCsv([[...padded(this.headings), ...HEADINGS.map((name) => `surelabel_${name}`)], ...rows], this.separator);
    const link = make("a", { href: URL.createObjectURL(new Blob(["\ufeff", content], { type: "text/csv" })), download: `${this.name.replace(/\.\w+$/, "")}-answers.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

/** Tell whether a text is unlike the calibration texts; a model without certificates can only tell by p-values. */
const isUnusual = (answer) => (answer.decision ? answer.unfamiliar : isUnlike(answer));

function answerCells(answer, significance, joint) {
  if (answer.problem) return ["", "", "", "", "", "", "", significance, "", "", "", "", "", answer.problem];
  return [
    answer.decision ?? "", answer.reason ?? "", answer.labels.join(joint), answer.assign.join(joint), answer.consider.join(joint), answer.confidence, answer.credibility, significance, answer.size.lower, answer.size.upper,
    answer.certain.join(joint), answer.open.join(joint), answer.n_more_open, "",
  ];
}

function previewRow(k, text, answer) {
  const excerpt = text.length > 160 ? `${text.slice(0, 160)}…` : text;
  const first = [make("td", {}, String(k + 1)), make("td", { class: "text", dir: "auto" }, excerpt)];
  if (answer.problem) return make("tr", {}, ...first, make("td", { colspan: "5" }, answer.problem));
  return make("tr", { class: isUnusual(answer) ? "unusual" : null }, ...first,
    make("td", { title: answer.reason ?? "" }, answer.decision ?? ""), make("td", { class: "labels" }, labelList(answer.labels, "small", { none: "no labels", limit: 10 })), make("td", { class: "n" }, share(answer.confidence)),
    make("td", { class: "n" }, share(answer.credibility), isUnusual(answer) ? make("span", { class: "visually-hidden" }, " unlike the calibration texts") : null),
    make("td", { class: "n" }, number(answer.size.readable)));
}
