// The form that asks for the server's token.

import { hasToken, rememberToken } from "./client.js";
import { byId } from "./dom.js";

/** Ask for the token in place of the page; `wrong` if one was given. */
export function askForToken(wrong = hasToken()) {
  rememberToken(null);
  byId("token-form").hidden = false;
  byId("main").hidden = true;
  byId("model-line").textContent = "";
  byId("token-problem").textContent = wrong ? "That token is wrong." : "";
  byId("token").select();
  byId("token").focus();
}

/** Show the page again; return whether the form was there. */
export function endAsking() {
  const asked = !byId("token-form").hidden;
  byId("token-form").hidden = true;
  byId("main").hidden = false;
  return asked;
}

/** Call `begin` with a new token. */
export function listenForToken(begin) {
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    rememberToken(byId("token").value.trim());
    begin();
  });
}
