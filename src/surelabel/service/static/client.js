// Asking the server.

/** What the server, or the way to it, has against a request. */
export class Problem extends Error {
  constructor(status, code, message, whatToDo, retryAfter = 0) {
    super(message);
    Object.assign(this, { status, code, whatToDo, retryAfter });
  }
}

const KEY = "surelabel-token";

/** Keep the token until the tab is closed. */
export const rememberToken = (token) => (token ? sessionStorage.setItem(KEY, token) : sessionStorage.removeItem(KEY));
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

/** Return the JSON that the server answers with, or throw a Problem. */
export async function ask(path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server cannot be reached.", "Check that it is running. What you entered is still here.");
  }
  let content;
  try {
    content = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(response.status, "not_json", "The server's answer cannot be read.", "Try again.");
  }
  if (response.ok) return content;
  const told = content.error ?? { code: "unknown", message: `The server answered ${response.status}.`, what_to_do: "Try again." };
  throw new Problem(response.status, told.code, told.message, told.what_to_do, Number(response.headers.get("Retry-After")) || 0);
}

/** Send JSON, and return what the server answers. */
export const send = (path, body, signal) => ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
});

/** Return a file that the server makes. */
export async function getFile(path) {
  const token = sessionStorage.getItem(KEY);
  const response = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store", credentials: "omit" });
  if (!response.ok) throw new Problem(response.status, "no_file", "The file could not be made.", "Try again.");
  return response.blob();
}

/** Return what the server says of its model. */
export const getModel = () => ask("v1/model");

/** Return the answers to texts of a group, if there are groups; `describe` asks for a sentence and a picture too. */
export const predict = (texts, level, { top, describe = false, group = "" }, signal) => send("v1/predict", {
  texts: texts.map((text) => text.toWellFormed?.() ?? text), confidence_level: level, top, describe, picture: describe,
  ...(group ? { group } : {}),
}, signal);
