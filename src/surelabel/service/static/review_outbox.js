// Decisions on their way to the server. They stay in the browser until the server has them: a lost connection, a reload
// or a server that is down loses nothing, and the key of a decision lets the server take it once however often it comes.

import { Problem, send } from "./client.js";

const KEY = "surelabel-outbox";
const RETRY = 1500;

const read = () => JSON.parse(localStorage.getItem(KEY) ?? "[]");
const write = (items) => localStorage.setItem(KEY, JSON.stringify(items));

/** Return a key that no other decision has; pages of other machines have no crypto.randomUUID without TLS. */
function newKey() {
  const numbers = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(numbers, (number) => number.toString(16).padStart(2, "0")).join("");
}

/** Sends what is put into it, in order; tells what was saved, what was refused, and what still waits. */
export class Outbox {
  constructor({ saved, refused, waiting }) {
    Object.assign(this, { saved, refused, waiting, sending: false, timer: 0 });
    window.addEventListener("online", () => this.pump());
  }

  /** Return the numbers of the texts whose decisions are on their way. */
  numbers() {
    return new Set(read().map((item) => item.body.number));
  }

  put(path, body) {
    write([...read(), { path, body: { ...body, key: newKey() } }]);
    this.pump();
  }

  async pump() {
    if (this.sending) return;
    this.sending = true;
    clearTimeout(this.timer);
    try {
      for (let items = read(); items.length > 0; items = read()) {
        const [item] = items;
        let answer = null;
        try {
          answer = await send(item.path, item.body);
        } catch (problem) {
          const isRefused = problem instanceof Problem && problem.status >= 400 && problem.status < 500 && ![401, 408, 429].includes(problem.status);
          if (!isRefused) {
            this.waiting(items.length, problem);
            this.timer = setTimeout(() => this.pump(), RETRY);
            return;
          }
          write(read().filter((other) => other.body.key !== item.body.key));
          this.refused(item, problem);
          continue;
        }
        write(read().filter((other) => other.body.key !== item.body.key));
        this.saved(item, answer);
      }
      this.waiting(0, null);
    } finally {
      this.sending = false;
    }
  }
}
