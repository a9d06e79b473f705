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
answers = bundle.answers(test.texts, top=3)

# Every answer says what to do with its text, and why: file it (certified: few filed texts are wrong), choose from a
# short list, or read it.
queues: dict[str, list[int]] = {}
for row, answer in enumerate(answers):
    queues.setdefault(answer.decision or "undecided", []).append(row)

right = np.array([set(answer.labels) == truth for answer, truth in zip(answers, test.label_sets, strict=True)])
print(f"{len(answers):,} texts; the best guess is right for {right.mean():.0%}")
print(f"{'queue':<10}{'texts':>7}{'guess right':>13}")
for queue, rows in sorted(queues.items(), key=lambda item: -len(item[1])):
    print(f"{queue:<10}{len(rows):>7}{right[rows].mean():>12.0%}")

# People see the least confident texts first.
waiting = queues.get("choose", []) + queues.get("read", [])
for row in sorted(waiting, key=lambda row: answers[row].confidence)[:2]:
    answer = answers[row]
    print(f"\n{answer.decision}: {answer.reason}\n{test.texts[row][:60]}...")
    for choice, candidate in zip("abc", answer.top, strict=False):
        print(f"  {choice}) {', '.join(candidate.labels)}  (p = {candidate.p_value:.2f})")
