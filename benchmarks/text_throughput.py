"""How fast the text classifiers are, each beside the plain way to do the same.

- texts per second in prediction, of every kind;
- bert: batches of like length against transformers' own text-classification pipeline, which pads to the
  maximum, with its default batch size; the same weights, the same probabilities; and against the same weights in
  int8, whose labels (those with a probability of 0.5 or more, at least one) are compared text by text, with the time
  that one text of 64 and of 192 tokens takes;
- linear: seconds to fit;
- randinit: an epoch with the fused convolution against the plain Conv2d-then-MaxPool module, the same
  batches, the same loss curve.

    python benchmarks/text_throughput.py --out results/text_throughput.json
    python benchmarks/text_throughput.py --quick

Speeds of the encoder do not depend on what it has learnt, so it is trained little: its upper third for two epochs,
on 2,000 texts. --only bert leaves the other kinds as they are in the file, --only int8
also the figures of float32.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel, pipeline
from transformers.modeling_outputs import SequenceClassifierOutput

from surelabel import corpora
from surelabel._core.storage import atomic_file
from surelabel.exceptions import DataWarning
from surelabel.experiments.run import machine
from surelabel.models.steps import versions
from surelabel.text import make
from surelabel.text.batching import Examples, pad, training_batches
from surelabel.text.bert import BertClassifier
from surelabel.text.cnn import ConvolutionalNetwork, RandinitClassifier, Word2vecClassifier
from surelabel.text.encoders import resolve_model
from surelabel.text.inputs import LabelledTexts
from surelabel.text.settings import CnnSettings, Word2vecSettings
from surelabel.text.tokenisation import encode
from surelabel.text.training import quiet_library

# Texts that the encoder is trained with before its speed is measured.
TRAINED = 2_000


def seconds(function: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


def measure_linear(parts: dict[str, Any], n_predicted: int) -> dict[str, float]:
    train, test = parts["train"], parts["test"]
    classifier = make("linear")
    fit, _ = seconds(lambda: classifier.fit(train.texts, train.label_matrix))
    predict, _ = seconds(lambda: classifier.predict_proba(test.texts[:n_predicted]))
    n_texts = min(n_predicted, len(test))
    return {"fit_seconds": fit, "fit_texts": len(train), "texts_a_second": n_texts / predict}


def epoch(network: ConvolutionalNetwork, examples: Examples, batches: list[np.ndarray]) -> tuple[float, list[float]]:
    """Train on batches with Adam; return the seconds and the loss at each step."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    labels = torch.from_numpy(examples.labels).float()
    losses = []
    start = time.perf_counter()
    for batch in batches:
        loss = network(**pad([examples.ids[i] for i in batch], 0), labels=labels[batch])["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return time.perf_counter() - start, losses


def measure_randinit(parts: dict[str, Any], n_plain: int, n_predicted: int) -> dict[str, Any]:
    """Compare an epoch of both convolutions; the plain one may be given fewer batches, and is scaled up."""
    train, test = parts["train"], parts["test"]
    classifier = RandinitClassifier(CnnSettings())
    classifier._prepare(LabelledTexts(list(train.texts), train.labels))
    examples = Examples(encode(classifier._tokenizer, train.texts), train.labels)
    batches = training_batches(examples.lengths, 32, seed=0, epoch=0)
    some = batches[:n_plain]
    curves, times = {}, {}
    for fused in (True, False):
        torch.manual_seed(0)
        # No dropout: the two then differ by rounding alone.
        settings = CnnSettings(fused=fused, dropout=0, word_dropout=0)
        n_words = classifier._tokenizer.get_vocab_size()
        network = ConvolutionalNetwork(settings, n_words, examples.labels.shape[1], settings.embedding_size)
        if fused:
            epoch(network, examples, batches[:1])  # compiles
            torch.manual_seed(0)
            network = ConvolutionalNetwork(settings, n_words, examples.labels.shape[1], settings.embedding_size)
        times[fused], curves[fused] = epoch(network, examples, some)
    torch.manual_seed(0)
    whole = ConvolutionalNetwork(CnnSettings(), n_words, examples.labels.shape[1], CnnSettings().embedding_size)
    whole_epoch, _ = epoch(whole, examples, batches)
    classifier._network, classifier.n_labels_ = whole, examples.labels.shape[1]
    texts = list(test.texts[:n_predicted])
    classifier.predict_proba(texts[:32])
    predict, _ = seconds(lambda: classifier.predict_proba(texts))
    difference = np.abs(np.array(curves[True]) / np.array(curves[False]) - 1)
    return {
        "epoch_seconds": whole_epoch,
        "epoch_texts": len(train),
        "batches_compared": len(some),
        "batches_an_epoch": len(batches),
        "fused_seconds": times[True],
        "plain_seconds": times[False],
        "times_faster": times[False] / times[True],
        "largest_relative_loss_difference": float(difference.max()),
        "losses_fused": curves[True][:: max(1, len(some) // 10)],
        "losses_plain": curves[False][:: max(1, len(some) // 10)],
        "texts_a_second": len(texts) / predict,
    }


def measure_word2vec(parts: dict[str, Any], n_predicted: int) -> dict[str, float]:
    """Measure prediction, and the training of word vectors that comes before that of the network."""
    train, test = parts["train"], parts["test"]
    classifier = Word2vecClassifier(Word2vecSettings())
    vectors, _ = seconds(lambda: classifier._prepare(LabelledTexts(list(train.texts), train.labels)))
    classifier.n_labels_ = train.labels.shape[1]
    texts = list(test.texts[:n_predicted])
    classifier.predict_proba(texts[:32])
    predict, _ = seconds(lambda: classifier.predict_proba(texts))
    return {"vectors_seconds": vectors, "texts_a_second": len(texts) / predict}


class _Config(PretrainedConfig):
    model_type = "surelabel-benchmark"


class _AsTransformersModel(PreTrainedModel):
    """Our network behind the interface that the pipeline calls."""

    config_class = _Config

    def __init__(self, config: _Config, network: torch.nn.Module) -> None:
        super().__init__(config)
        self.network = network

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **others: Any) -> Any:
        return SequenceClassifierOutput(logits=self.network(input_ids, attention_mask.sum(1))["logits"])


def trained_bert(train: Any, model: str, max_tokens: int) -> tuple[Any, Any]:
    """Return one trained encoder as two classifiers: in float32 and in int8."""
    n_layers = AutoConfig.from_pretrained(resolve_model(model)).num_hidden_layers
    settings = {"model": model, "epochs": 2, "frozen_layers": n_layers - n_layers // 3}
    some = slice(TRAINED)
    fitted = make("bert", **settings, max_tokens=64).fit(train.texts[some], train.label_matrix[some], progress=False)
    fitted._tokenizer.enable_truncation(max_tokens)
    quantised = make("bert", **settings, max_tokens=max_tokens, quantise="int8")
    for name in ("_network", "_tokenizer", "_padding", "_pooling", "n_labels_"):
        setattr(quantised, name, getattr(fitted, name))
    return fitted, quantised


def chosen(probabilities: Any) -> Any:
    """Return the labels with a probability of 0.5 or more, at least one."""
    labels = probabilities >= 0.5
    empty = ~labels.any(axis=1)
    labels[empty, probabilities[empty].argmax(axis=1)] = True
    return labels


def latencies(classifiers: dict[str, Any], texts: list[str], turns: int) -> dict[str, dict[str, float]]:
    """Return milliseconds that one text takes, the median of turns, for texts of 64 and of 192 tokens."""
    found: dict[str, dict[str, float]] = {}
    for n_tokens in (64, 192):
        long = max(texts, key=len)
        times: dict[str, list[float]] = {name: [] for name in classifiers}
        for classifier in classifiers.values():
            classifier._tokenizer.enable_truncation(n_tokens)
            classifier.predict_proba([long])
        for _ in range(turns):
            for name, classifier in classifiers.items():
                times[name].append(seconds(lambda classifier=classifier: classifier.predict_proba([long]))[0])
        found[str(n_tokens)] = {name: 1000 * float(np.median(values)) for name, values in times.items()}
    return found


def measure_bert(parts: dict[str, Any], model: str, max_tokens: int, n_predicted: int) -> dict[str, Any]:
    from transformers import AutoTokenizer

    train, test = parts["train"], parts["test"]
    classifier, quantised = trained_bert(train, model, max_tokens)
    assert isinstance(classifier, BertClassifier)
    n_labels = classifier.n_labels_
    texts = list(test.texts[:n_predicted])
    tokenizer = AutoTokenizer.from_pretrained(resolve_model(model))
    config = _Config(
        id2label={label: str(label) for label in range(n_labels)},
        label2id={str(label): label for label in range(n_labels)},
        problem_type="multi_label_classification",
    )
    # The pipeline says of every model that is not its own that it is not supported, and runs it.
    with quiet_library():
        transformers.logging.set_verbosity(transformers.logging.CRITICAL)
        theirs = pipeline(
            "text-classification",
            model=_AsTransformersModel(config, classifier._network),
            tokenizer=tokenizer,
            top_k=None,
            function_to_apply="sigmoid",
        )
    times: dict[str, list[float]] = {"float32": [], "int8": []}
    for each in (classifier, quantised):
        each.predict_proba(texts[:8])
    for _ in range(2):
        for name, each in (("float32", classifier), ("int8", quantised)):
            taken, found_now = seconds(lambda each=each: each.predict_proba(texts))
            times[name].append(taken)
            if name == "float32":
                ours = found_now
            else:
                whole = found_now
    ours_seconds, int8_seconds = min(times["float32"]), min(times["int8"])
    options = {"padding": "max_length", "truncation": True, "max_length": max_tokens}
    theirs(texts[:2], **options)
    theirs_seconds, answers = seconds(lambda: theirs(texts, **options))
    found = np.empty_like(ours)
    for row, answer in zip(found, answers, strict=True):
        for entry in answer:
            row[int(entry["label"])] = entry["score"]
    return {
        "model": model,
        "max_tokens": max_tokens,
        "n_texts": len(texts),
        "texts_a_second": len(texts) / ours_seconds,
        "pipeline_texts_a_second": len(texts) / theirs_seconds,
        "times_faster": theirs_seconds / ours_seconds,
        "largest_probability_difference": float(np.abs(found - ours).max()),
        "int8": {
            "threads": torch.get_num_threads(),
            "max_tokens": max_tokens,
            "n_texts": len(texts),
            "texts_a_second": len(texts) / int8_seconds,
            "float32_texts_a_second": len(texts) / ours_seconds,
            "pipeline_texts_a_second": len(texts) / theirs_seconds,
            "times_faster_than_float32": ours_seconds / int8_seconds,
            "times_faster_than_pipeline": theirs_seconds / int8_seconds,
            "same_labels": float((chosen(whole) == chosen(ours)).all(axis=1).mean()),
            "mean_probability_difference": float(np.abs(whole - ours).mean()),
            "largest_probability_difference": float(np.abs(whole - ours).max()),
            "one_text_milliseconds": latencies({"float32": classifier, "int8": quantised}, texts, 20),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="reuters")
    parser.add_argument("--path", type=Path, help="where the corpus lies; else SURELABEL_DATA, the cache, the web")
    parser.add_argument("--out", type=Path, default=Path("results/text_throughput.json"))
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--quick", action="store_true", help="a few texts: does it run")
    parser.add_argument("--only", choices=("linear", "bert", "int8", "randinit", "word2vec"), help="measure one")
    parser.add_argument("--texts", type=int, help="texts that encoders predict for; 500 by default")
    parser.add_argument("--threads", type=int, help="threads of torch")
    parser.add_argument("--plain-batches", type=int, help="batches of the plain convolution; default: an epoch")
    arguments = parser.parse_args()
    corpus = corpora.load(arguments.corpus, path=arguments.path)
    parts = {"train": corpus.part("train", "calibration"), "test": corpus.part("test")}
    n_predicted = 40 if arguments.quick else 1_000
    n_plain = arguments.plain_batches or (3 if arguments.quick else 10**9)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "threads": torch.get_num_threads()}
    n_encoded = arguments.texts or n_predicted // (1 if arguments.quick else 2)
    kinds = {
        "linear": lambda: measure_linear(parts, n_predicted),
        "bert": lambda: measure_bert(parts, arguments.model, arguments.max_tokens, n_encoded),
        "randinit": lambda: measure_randinit(parts, n_plain, n_predicted),
        "word2vec": lambda: measure_word2vec(parts, n_predicted),
    }
    if arguments.only:
        kept = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
        if arguments.only == "int8":
            whole = kinds["bert"]
            kinds = {"bert": lambda: {**kept.get("bert", {}), "int8": whole()["int8"]}}
        else:
            kinds = {arguments.only: kinds[arguments.only]}
        document = {**document, **kept}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for kind, measure in kinds.items():
            document[kind] = measure()
            print(kind, json.dumps(document[kind]), flush=True)
    with atomic_file(arguments.out) as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
