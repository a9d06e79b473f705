"""Training of networks by transformers' Trainer: early stopping on micro-F1, checkpoints, batches of similar length.

A run that was killed continues from the checkpoint of its last epoch. Its weights then differ from those of an
uninterrupted run in which texts share a batch, no more.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
import transformers
from sklearn.metrics import f1_score
from torch import nn
from torch.optim.swa_utils import AveragedModel
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import EvalPrediction, get_last_checkpoint

from surelabel._core import progress
from surelabel._core.validation import BoolArray
from surelabel.exceptions import TrainingError
from surelabel.text.base import History
from surelabel.text.tokens import Ids, pad

_log = logging.getLogger(__name__)

_PRODUCT_SECONDS = 180


class Averaged(nn.Module):
    """A network, and the running average of its weights that replaces it outside training."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()

        def average(averages: Any, current: Any, n_averaged: Any) -> None:  # early averages forget faster
            n = int(n_averaged)
            torch._foreach_lerp_(averages, current, 1 - min(decay, (1 + n) / (10 + n)))

        self.network = network
        self.average = AveragedModel(network, multi_avg_fn=average)
        self.average.requires_grad_(False)

    def forward(
        self, input_ids: torch.Tensor, lengths: torch.Tensor, labels: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """Compute with the network in training, with the average in evaluation."""
        outputs: dict[str, torch.Tensor] = (self.network if self.training else self.average)(input_ids, lengths, labels)
        return outputs


def train(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    parts: tuple[tuple[Ids, BoolArray], tuple[Ids, BoolArray]],
    settings: dict[str, Any],
    work_folder: Path | None,
    **arguments: Any,
) -> tuple[nn.Module, History]:
    """Train on the first part, stop by the second; return the network with the best epoch's weights, and the history.

    Each part is token ids and labels (n_texts, n_labels). Of the classifier's settings, batch size, epochs, patience,
    averaging and seed are used; `arguments` are TrainingArguments. Only a run with the same settings and parts
    continues from a checkpoint.
    """
    wrapped = Averaged(network, settings["averaging"]) if settings.get("averaging") else network
    training, validation = (
        [{"input_ids": one, "labels": row} for one, row in zip(*part, strict=True)] for part in parts
    )
    with contextlib.ExitStack() as opened:
        if work_folder is None:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="surelabel-")))
        else:
            folder = work_folder / f"{settings['kind']}-{joblib.hash((settings, parts))[:16]}"
            folder.mkdir(parents=True, exist_ok=True)
        opened.enter_context(_own_random_numbers())
        opened.enter_context(quiet_library())
        n_steps = settings["epochs"] * -(-len(training) // settings["batch_size"])
        advance = opened.enter_context(progress.step("training a network", n_steps))
        trainer = Trainer(
            model=wrapped,
            args=_arguments(settings, folder, is_resumable=work_folder is not None, **arguments),
            train_dataset=training,
            eval_dataset=validation,
            data_collator=_collate,
            compute_metrics=_measure,
            callbacks=[EarlyStoppingCallback(settings["patience"]), _Callback(advance)],
            optimizers=(optimizer, None),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.remove_callback(ProgressCallback)
        checkpoint = _last_checkpoint(folder)
        _log.info("training on %d texts%s", len(training), f", continued from {checkpoint}" if checkpoint else "")
        trainer.train(resume_from_checkpoint=checkpoint)
        trained = trainer.accelerator.unwrap_model(wrapped, keep_fp32_wrapper=False)
    best: nn.Module = trained.average.module if isinstance(trained, Averaged) else trained
    if not all(bool(torch.isfinite(parameter).all()) for parameter in best.parameters()):
        raise TrainingError("Training diverged: weights are not finite. Lower the learning rate.")
    return best.eval().requires_grad_(False), _history(trainer.state.log_history)


class _Callback(TrainerCallback):
    """Averages weights and reports progress."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Average the weights."""
        network = others["model"]
        if isinstance(network, Averaged):
            network.average.update_parameters(network.network)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Report progress."""
        self._advance(1)


def _arguments(
    settings: dict[str, Any], folder: Path, *, is_resumable: bool, bf16: bool = False, **arguments: Any
) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=settings["batch_size"],
        per_device_eval_batch_size=2 * settings["batch_size"],
        train_sampling_strategy="group_by_length",
        num_train_epochs=settings["epochs"],
        bf16=bf16 and has_bfloat16(),
        use_cpu=not torch.accelerator.is_available(),
        seed=settings["seed"],
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        save_only_model=not is_resumable,
        restore_callback_states_from_checkpoint=is_resumable,
        load_best_model_at_end=True,
        metric_for_best_model="progress",
        greater_is_better=True,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
        **arguments,
    )


def _collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return a batch of examples as tensors."""
    labels = np.stack([example["labels"] for example in examples])
    return {**pad([example["input_ids"] for example in examples]), "labels": torch.from_numpy(labels).float()}


def _measure(prediction: EvalPrediction) -> dict[str, float]:
    """Return the validation micro-F1 at probability 0.5, and the same with ties broken by the loss."""
    # Rare labels keep the micro-F1 of the first epochs at 0 while the loss falls, which is not a reason to stop.
    logits, labels = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    micro_f1 = float(f1_score(labels, logits >= 0, average="micro", zero_division=0))
    with np.errstate(invalid="ignore"):  # a training that diverged is reported at its end
        loss = float(np.mean(np.logaddexp(0, logits) - logits * labels))
    return {"micro_f1": micro_f1, "progress": micro_f1 - 1e-6 * min(loss, 10.0)}


def _history(log: list[dict[str, Any]]) -> History:
    """Return loss and validation micro-F1 of each epoch from Trainer's log."""
    losses = (entry["loss"] for entry in log if "loss" in entry)
    measured = (entry for entry in log if "eval_micro_f1" in entry)
    return [
        {
            "epoch": round(entry["epoch"]),
            "training_loss": float(loss),
            "validation_micro_f1": float(entry["eval_micro_f1"]),
            "validation_loss": float(entry["eval_loss"]),
        }
        for loss, entry in zip(losses, measured, strict=True)
    ]


def _last_checkpoint(folder: Path) -> str | None:
    """Return the newest complete checkpoint; remove those that a killed run left half-written."""
    while checkpoint := get_last_checkpoint(str(folder)):
        try:
            json.loads(Path(checkpoint, "trainer_state.json").read_text(encoding="utf-8"))  # Trainer writes it last
            return str(checkpoint)
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return None


@contextlib.contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Leave the process's random numbers as they were: Trainer seeds all of them."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 (Trainer seeds the global state)
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


@contextlib.contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library's messages and progress bars off the terminal; errors stay."""
    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars:
            transformers.logging.enable_progress_bar()


# Small products of the kinds that an encoder needs, forward and backward, in float32 and in bfloat16.
_PRODUCTS = """
import torch
torch.manual_seed(0)
layer, x = torch.nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True), torch.randn(4, 32, 64)
def gradients(bfloat16):
    layer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        (layer(x) * x).float().sum().backward()
    return torch.cat([parameter.grad.flatten() for parameter in layer.parameters()])
exact, rounded = gradients(False), gradients(True)
assert ((exact - rounded).norm() / exact.norm()).item() < 0.05
"""


def has_bfloat16() -> bool:
    """Whether this machine multiplies in bfloat16, and correctly: seen in a child process, once per process."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if not any(bool(getattr(torch.cpu, name, lambda: False)()) for name in checks):
        return False
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "DEFAULT")).upper()
    return any(name in limit for name in ("DEFAULT", "ALL", "BF16", "AMX")) and _product_works(limit)


@functools.cache
def _product_works(limit: str) -> bool:
    """Whether the products end, with the right result, in a child process; `limit` is part of the machine's state."""
    # Some machines announce AMX and end the process in the first product.
    try:
        run = subprocess.run(  # noqa: S603 (our own code)
            [sys.executable, "-c", _PRODUCTS], timeout=_PRODUCT_SECONDS, check=False, capture_output=True
        )
        works = run.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    if not works:
        _log.warning("This machine announces bfloat16, but a small product in it fails. Training is in float32.")
    return works
