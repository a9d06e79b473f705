// The decision on its way to the server: one at a time. It stays in the browser until the server has it, so a lost
// connection or a reload loses nothing; its key lets the server save it once however often it arrives.

import { Problem, send } from "./client.js";

const KEY = "surelabel-decision";
const RETRY = 1500;
const PASSING = [0, 401, 408, 429];

/** Return a key that no other decision has. crypto.randomUUID needs TLS, which pages in a local network lack. */
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  /** `saved`, `refused` and `waiting` are called with what became of a decision. */
  constructor({ saved, refused, waiting }) {
    Object.assign(this, { saved, refused, waiting, timer: 0, isSending: false });
    window.addEventListener("online", () => this.send());
  }

  get pending() {
    return JSON.parse(localStorage.getItem(KEY) ?? "null");
  }

  /** Take a decision, unless another one is still on its way. */
  put(decision) {
    if (this.pending) return false;
    localStorage.setItem(KEY, JSON.stringify({ ...decision, key: newKey() }));
    this.send();
    return true;
  }

  async send() {
    const decision = this.pending;
    if (!decision || this.isSending) return;
    clearTimeout(this.timer);
    this.isSending = true;
    try {
      const answer = await (await send("v1/review/decisions", decision)).json();
      localStorage.removeItem(KEY);
      this.saved(decision, answer);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (PASSING.includes(problem.status) || problem.status >= 500) {
        this.waiting(decision, problem);
        this.timer = setTimeout(() => this.send(), RETRY);
      } else {
        localStorage.removeItem(KEY);
        this.refused(decision, problem);
      }
    } finally {
      this.isSending = false;
    }
  }
}
