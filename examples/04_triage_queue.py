"""A triage queue: which texts to file, which to show to a person, and in what order.

python examples/04_triage_queue.py                     # made-up texts, seconds
python examples/04_triage_queue.py --corpus reuters20
"""

import argparse

import numpy as np

from surelabel import corpora, train

parser = argparse.ArgumentParser()
parser.add_argument("--corpus", default="synthetic")
corpus = corpora.load(parser.parse_args().corpus)
test = corpus.part("test")

# Train, calibrate and evaluate in one call: what `surelabel train` does. The linear classifier takes seconds.
bundle = train(corpus, measure="LogLoss", compare=False)
answers = bundle.answers(test.texts, significance="0.05", top=3)


def queue_of(answer):
    """Return who gets a text.

    Credibility is the p-value of the best guess. If even that is low, the text is unlike the calibration texts, and a
    set that looks sure means nothing. Otherwise the size of the set says how much there is to decide.
    """
    if answer.credibility <= 0.05 or answer.size == 0:
        return "read: unlike the calibration texts"
    if answer.size == 1:
        return "file: one label-set is plausible"
    if answer.size is not None and answer.size <= 3:
        return "choose: a few are plausible"
    return "read: too many are plausible"


queues: dict[str, list[int]] = {}
for row, answer in enumerate(answers):
    queues.setdefault(queue_of(answer), []).append(row)

right = np.array([set(answer.labels) == truth for answer, truth in zip(answers, test.label_sets, strict=True)])
print(f"{len(answers):,} texts; the best guess is right for {right.mean():.0%}")
print(f"{'queue':<36}{'texts':>7}{'guess right':>13}")
for queue, rows in sorted(queues.items(), key=lambda item: -len(item[1])):
    print(f"{queue:<36}{len(rows):>7}{right[rows].mean():>12.0%}")

# Within a queue the least confident texts come first.
waiting = queues.get("choose: a few are plausible", [])
for row in sorted(waiting, key=lambda row: answers[row].confidence)[:2]:
    answer = answers[row]
    print(f"\nconfidence {answer.confidence:.2f}: {test.texts[row][:60]}...")
    for choice, candidate in zip("abc", answer.top, strict=False):
        print(f"  {choice}) {', '.join(candidate.labels)}  (p = {candidate.p_value:.2f})")
