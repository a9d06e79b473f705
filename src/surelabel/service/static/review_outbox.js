// Decisions on their way to the server, one after the other. They stay in the browser until the server has them, so a
// lost connection or a reload loses nothing; their keys let the server save each once however often it arrives.

import { Problem, send } from "./client.js";

const KEY = "surelabel-decisions";
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
    return JSON.parse(localStorage.getItem(KEY) ?? "[]");
  }

  set pending(decisions) {
    localStorage.setItem(KEY, JSON.stringify(decisions));
  }

  put(decision) {
    this.pending = [...this.pending, { ...decision, key: newKey() }];
    this.send();
  }

  async send() {
    clearTimeout(this.timer);
    if (this.isSending) return;
    this.isSending = true;
    try {
      for (let [decision] = this.pending; decision; [decision] = this.pending) {
        let answer;
        let refusal = null;
        try {
          answer = await (await send("v1/review/decisions", decision)).json();
        } catch (problem) {
          if (!(problem instanceof Problem)) throw problem;
          if (PASSING.includes(problem.status) || problem.status >= 500) {
            this.timer = setTimeout(() => this.send(), RETRY);
            this.waiting(problem);
            return;
          }
          refusal = problem;
        }
        this.pending = this.pending.filter((other) => other.key !== decision.key);
        if (refusal) this.refused(decision, refusal);
        else this.saved(decision, answer);
      }
    } finally {
      this.isSending = false;
    }
  }
}
