// What both pages share: requests, errors, and elements.

export const byId = (id) => document.getElementById(id);

/** A request that was refused, or did not arrive (status 0). */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Send a request; a body is sent as JSON. Returns the response, or throws a Problem. */
export async function send(path, body, signal) {
  let response;
  const headers = { "Content-Type": "application/json" };
  try {
    response = await fetch(path, body === undefined ? { signal } : { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service cannot be reached.");
  }
  if (response.ok) return response;
  throw await problemOf(response);
}

/** Return the problem that a response reports. */
export async function problemOf(response) {
  let message = `The service failed (${response.status}).`;
  try {
    const { error } = await response.json();
    message = `${error.message} ${error.what_to_do}`;
  } catch { /* it was not the service that answered */ }
  return new Problem(response.status, message);
}

/** Show a problem, with a way to try again if there is one. */
export function showProblem(message, again) {
  byId("problem-text").textContent = message;
  byId("again").hidden = !again;
  byId("again").onclick = again ?? null;
  byId("problem").hidden = false;
}

export function hideProblem() {
  byId("problem").hidden = true;
}

/** Have a screen reader say something. */
export function announce(words) {
  byId("status").textContent = words;
}

/** Create an element. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// The server renders cards and escapes whatever comes from texts and labels. This is the one place that inserts markup.
const policy = globalThis.trustedTypes?.createPolicy("surelabel", { createHTML: (markup) => markup }) ?? { createHTML: (markup) => markup };

/** Put a card that the server rendered into an element. */
export function insertCard(element, card) {
  const isOpen = element.querySelector("details.why")?.open ?? false;
  element.innerHTML = policy.createHTML(card);
  const why = element.querySelector("details.why");
  if (why) why.open = isOpen;
}

/** Show a text with some of its words marked. Positions count characters as Python does. */
export function showMarked(element, text, words = []) {
  const characters = Array.from(text);
  const parts = [];
  let done = 0;
  for (const { start, end } of words) {
    if (start < done) continue;
    parts.push(characters.slice(done, start).join(""), make("mark", {}, characters.slice(start, end).join("")));
    done = end;
  }
  element.replaceChildren(...parts, characters.slice(done).join(""));
}
