// What went wrong on a page, and a button to try again.

import { Problem } from "./client.js";
import { byId } from "./dom.js";
import { askForToken } from "./token.js";

let again = null;
let advice = "";

/** Say nothing more of what went wrong. */
export function calm() {
  byId("problem").hidden = true;
  again = null;
}

/** Show what went wrong; what was shown before stays. */
export function complain(problem, retry = null) {
  const expected = problem instanceof Problem;
  if (expected && problem.status === 401) {
    askForToken();
    return;
  }
  byId("problem-title").textContent = expected ? problem.message : "Something went wrong on this page.";
  byId("problem-text").textContent = expected ? problem.whatToDo : advice;
  byId("again").hidden = !retry;
  byId("problem").hidden = false;
  again = retry;
}

/** Let the button try again; `otherwise` is the advice about errors of the page itself. */
export function listenForRetry(otherwise) {
  advice = otherwise;
  byId("again").addEventListener("click", () => again?.());
}
