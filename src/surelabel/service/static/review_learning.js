// The next generation of the model: how far it is, and the buttons that start it, switch to it, and undo that.

import { announce, byId, send } from "./client.js";

const n = (number) => number.toLocaleString("en");
const STATES = {
  absent: "Decided texts can teach the next model. Until it is ready, this one serves.",
  training: "The next model is not trained yet.",
  waiting: "The next model waits for checked texts. Only texts of the queue Check, added after its training, count.",
  ready: "The next model is ready.",
};

/** Show learning in its part of the page; `attempt` does what may be refused. */
export function showLearning(attempt) {
  const panel = byId("learning");
  if (!panel) return;
  let timer = 0;

  function show(state) {
    const { needed, step } = state;
    let words = state.can_start || state.state === "ready" ? STATES[state.state] : "Start surelabel review with --training FILE to learn from this page.";
    if (state.is_running) words = step.step ? `${step.step}${step.total ? ` ${Math.round(100 * step.done / step.total)} %` : ""} …` : "starting …";
    byId("learning-words").textContent = words;
    byId("learning-problem").textContent = state.problem ?? (state.alarm ? "Filing has stopped: checked texts are unlike those that the model was calibrated on." : "");
    for (const part of ["filing", "lists"]) {
      const bar = byId(`learning-${part}`);
      bar.max = needed[part];
      bar.value = state[part];
      byId(`learning-${part}-words`).textContent = `${n(state[part])} of ${n(needed[part])}`;
    }
    byId("learning-bars").hidden = state.state === "absent";
    const can = {
      learn: !state.is_running && state.can_start && (state.state === "waiting" ? state.filing === needed.filing : state.state !== "ready"),
      calibrate: !state.is_running && state.alarm && state.state === "absent",
      switch: !state.is_running && state.state === "ready",
      undo: !state.is_running && state.can_undo,
    };
    const focused = document.activeElement;
    for (const [action, is] of Object.entries(can)) byId(`learning-${action}`).hidden = !is;
    if (focused.hidden) panel.querySelector("summary").focus();
    byId("learning-learn").textContent = state.state === "absent" ? "Learn" : state.state === "waiting" ? "Calibrate with the checked texts" : "Continue";
    clearTimeout(timer);
    if (panel.open && state.is_running) timer = setTimeout(load, 1000);
  }

  async function load() {
    const before = byId("learning-words").textContent;
    const state = await attempt(async () => (await send("v1/review/learning")).json());
    if (!state) return;
    show(state);
    if (!state.is_running && before.endsWith("…")) announce(byId("learning-words").textContent);
  }

  async function act(action) {
    const state = await attempt(async () => (await send("v1/review/learning", { action })).json());
    if (!state) return;
    show(state);
    if (action === "switch" || action === "undo") {
      byId("learning-words").textContent = "The service starts again with the other model.";
      announce(byId("learning-words").textContent);
      setTimeout(() => location.reload(), 1000); // the request waits until the service listens again
    }
  }

  panel.addEventListener("toggle", () => { if (panel.open) load(); });
  for (const action of ["learn", "calibrate", "switch", "undo"]) byId(`learning-${action}`).addEventListener("click", () => act(action));
}
