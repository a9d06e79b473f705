// Numbers in words.

/** Levels of the slider, as the decimals that are sent. */
export const LEVELS = ["0.5", "0.6", "0.7", "0.8", "0.85", "0.9", "0.95", "0.975", "0.98", "0.99", "0.995", "0.999"];
export const DEFAULT_LEVEL = "0.95";
/** What to do with a text. */
export const VERDICTS = { file: "File it", choose: "Choose from a short list", read: "Read it yourself" };
/** Tags to consider that are shown at first. */
export const MOST_TAGS = 20;
/** Highest p-value at which a text is called unlike the calibration texts. */
const UNLIKE = 0.05;

const trimmed = (value, digits) => String(Number(value.toFixed(digits)));

/** Write a level as a percentage. */
export const percent = (level) => `${trimmed(100 * Number(level), 3)} %`;

/** Return the place on the slider of a significance; that of the usual level if it has none. */
export function placeOf(significance) {
  const place = LEVELS.findIndex((level) => Math.abs(1 - Number(level) - Number(significance)) < 1e-9);
  return place >= 0 ? place : LEVELS.indexOf(DEFAULT_LEVEL);
}

/** Say what a confidence level promises, and what the model did on its test texts if that was measured. */
export function promise(level, evaluation) {
  const missed = 1 / (1 - Number(level));
  const often = missed < 2.6 ? `${trimmed(100 / missed, 1)} texts in 100` : `1 text in ${Math.round(missed).toLocaleString("en")}`;
  const asked = `The true label-set is missed for at most ${often}.`;
  const seen = evaluation?.levels.find((each) => Math.abs(Number(each.significance) - (1 - Number(level))) < 1e-9);
  if (!seen) return asked;
  return `${asked} Asked for ${percent(seen.significance)}: ${trimmed(100 * seen.error, 1)} % of ${evaluation.n_texts.toLocaleString("en")} test texts were missed.`;
}

/** Write a p-value, confidence or credibility. */
export const share = (value) => (value > 0 && value < 0.001 ? "< 0.001" : value.toFixed(3));

/** Tell whether no label-set fits a text: 1 - confidence is the highest p-value of all but the best guess. */
export const isUnlike = ({ confidence, credibility }) => Math.max(credibility, 1 - confidence) <= UNLIKE;

/** Say what a confidence means: [style, words, explanation]. It is no chance that the best guess is right, so it gets no praise. */
export function confidenceWords(answer) {
  const { confidence } = answer;
  // All others are implausible then, but so is the best.
  if (isUnlike(answer)) return ["bad", "Means nothing here", "No label-set fits well, not even the best one."];
  if (confidence < 0.8) return ["bad", "Others fit too", `Another label-set has a p-value of ${share(1 - confidence)}.`];
  return ["plain", "", `Every other label-set has a p-value of ${share(1 - confidence)} or less. This is not the chance that the best guess is right.`];
}

/** Say how plausible the best guess is, which is how typical the text is unless another label-set is more plausible. */
export function credibilityWords(answer) {
  const { confidence, credibility } = answer;
  const share100 = trimmed(100 * credibility, credibility < 0.1 ? 1 : 0);
  const why = `About ${share100} % of calibration texts looked as strange with their true labels as this one with the best guess, or stranger.`;
  if (isUnlike(answer)) return ["bad", "Unlike the calibration texts", why];
  if (1 - confidence - credibility > 1e-9) return ["fair", "Not the most plausible label-set", why];
  return credibility > 0.2 ? ["good", "Like the calibration texts", why] : ["fair", "Somewhat unusual", why];
}

/** Write labels as a phrase. */
export function phrase(labels) {
  if (labels.length === 0) return "no labels";
  if (labels.length === 1) return labels[0];
  return `${labels.slice(0, -1).join(", ")} and ${labels[labels.length - 1]}`;
}

/** Say the answer in a sentence, for screen readers. */
export function spoken(answer, level) {
  const size = answer.size.readable.replace("10^", "10 to the power of ");
  const unlike = !answer.decision && isUnlike(answer) ? " Caution: the text is unlike the calibration texts." : "";
  const verdict = answer.decision ? `${VERDICTS[answer.decision]}. ${answer.reason} ` : "";
  return `${verdict}Best guess: ${phrase(answer.labels)}. At ${percent(level)} confidence, ${size} ${size === "1" ? "label-set is" : "label-sets are"} plausible.${unlike}`;
}
