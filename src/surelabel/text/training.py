"""Training of networks by transformers' Trainer: early stopping on micro-F1, checkpoints, batches of similar length.

A run that was killed continues from its last checkpoint. Its weights then differ from those of an uninterrupted run in
which texts share a batch, no more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from torch.optim.swa_utils import AveragedModel
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import EvalPrediction

from surelabel._core import progress
from surelabel._core.validation import BoolArray
from surelabel.exceptions import TrainingError
from surelabel.text.base import History
from surelabel.text.tokens import Ids, pad

_log = logging.getLogger(__name__)

# Within an epoch that takes longer, a checkpoint is written this often.
_CHECKPOINT_SECONDS = 600.0
_PRODUCT_SECONDS = 180


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a network is trained. Only a run with the same plan and data continues from a checkpoint."""

    settings: dict[str, Any]
    batch_size: int
    epochs: int
    patience: int
    seed: int
    padding: int = 0
    averaging: float = 0.0
    schedule: str = "constant"
    warmup: float = 0.0
    max_gradient: float = 0.0
    bfloat16: bool = False


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
    plan: Plan,
    work_folder: Path | None,
) -> tuple[nn.Module, History]:
    """Train on the first part, stop by the second; return the network with the best epoch's weights, and the history.

    Each part is token ids and labels (n_texts, n_labels).
    """
    wrapped = Averaged(network, plan.averaging) if plan.averaging else network
    training, validation = (
        [{"input_ids": one, "labels": row} for one, row in zip(*part, strict=True)] for part in parts
    )
    with contextlib.ExitStack() as opened:
        if work_folder is None:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="surelabel-")))
        else:
            folder = work_folder / f"{plan.settings['kind']}-{_fingerprint(plan, parts)}"
            folder.mkdir(parents=True, exist_ok=True)
        opened.enter_context(_own_random_numbers())
        opened.enter_context(quiet_library())
        advance = opened.enter_context(
            progress.step("training a network", plan.epochs * -(-len(training) // plan.batch_size))
        )
        trainer = Trainer(
            model=wrapped,
            args=_arguments(plan, folder, only_best=work_folder is None),
            train_dataset=training,
            eval_dataset=validation,
            data_collator=functools.partial(_collate, plan.padding),
            compute_metrics=_measure,
            callbacks=[EarlyStoppingCallback(plan.patience), _Callback(advance)],
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
    """Averages weights, reports progress, asks for checkpoints within long epochs."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._last_save = time.monotonic()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Average the weights."""
        network = others["model"]
        if isinstance(network, Averaged):
            network.average.update_parameters(network.network)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Report progress; ask for a checkpoint within a long epoch."""
        self._advance(1)
        if not args.save_only_model and time.monotonic() - self._last_save > _CHECKPOINT_SECONDS:
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Remember when the last checkpoint was written."""
        self._last_save = time.monotonic()


def _arguments(plan: Plan, folder: Path, *, only_best: bool) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=plan.batch_size,
        per_device_eval_batch_size=2 * plan.batch_size,
        train_sampling_strategy="group_by_length",
        num_train_epochs=plan.epochs,
        lr_scheduler_type=plan.schedule,
        warmup_steps=plan.warmup,
        max_grad_norm=plan.max_gradient,
        bf16=plan.bfloat16,
        use_cpu=not torch.accelerator.is_available(),
        seed=plan.seed,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        save_only_model=only_best,
        load_best_model_at_end=True,
        metric_for_best_model="progress",
        greater_is_better=True,
        restore_callback_states_from_checkpoint=not only_best,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
    )


def _collate(padding: int, examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return a batch of examples as tensors."""
    batch = pad([example["input_ids"] for example in examples], padding)
    batch["labels"] = torch.from_numpy(np.stack([example["labels"] for example in examples])).float()
    return batch


def _measure(prediction: EvalPrediction) -> dict[str, float]:
    """Return the validation micro-F1 at probability 0.5, and the same with ties broken by the loss."""
    # Rare labels keep the micro-F1 of the first epochs at 0 while the loss falls, which is not a reason to stop.
    logits, labels = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    predicted, truth = logits >= 0, labels.astype(bool)
    total = int(predicted.sum()) + int(truth.sum())
    micro_f1 = 2 * int((predicted & truth).sum()) / total if total else 0.0
    with np.errstate(invalid="ignore"):  # a training that diverged is reported at its end
        loss = float(np.mean(np.logaddexp(0, logits) - logits * labels))
    return {"micro_f1": micro_f1, "progress": micro_f1 - 1e-6 * min(loss, 10.0)}


def _history(log: list[dict[str, Any]]) -> History:
    """Return loss and validation micro-F1 of each epoch from Trainer's log."""
    epochs: dict[int, dict[str, float]] = {}
    for entry in log:
        epoch = round(entry.get("epoch", 0))
        row = epochs.setdefault(epoch, {"epoch": epoch})
        if "loss" in entry:
            row["training_loss"] = float(entry["loss"])
        if "eval_micro_f1" in entry:
            row |= {"validation_micro_f1": float(entry["eval_micro_f1"]), "validation_loss": float(entry["eval_loss"])}
    return [row for row in epochs.values() if "validation_micro_f1" in row]


def _fingerprint(plan: Plan, parts: tuple[tuple[Ids, BoolArray], ...]) -> str:
    """Return a checksum of the plan, token ids and labels."""
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(plan), sort_keys=True, default=str).encode())
    for ids, labels in parts:
        digest.update(str(labels.shape).encode() + np.packbits(labels).tobytes())
        for one in ids:
            digest.update(len(one).to_bytes(8, "little") + one.tobytes())
    return digest.hexdigest()[:16]


def _last_checkpoint(folder: Path) -> str | None:
    """Return the newest complete checkpoint; remove those that a killed run left half-written."""
    complete = []
    for checkpoint in folder.glob("checkpoint-*"):
        try:
            json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))  # Trainer writes it last
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
        else:
            complete.append(checkpoint)
    return str(max(complete, key=lambda path: int(path.name.split("-")[1]))) if complete else None


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
layer, norm = torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)
x = torch.randn(4, 32, 64)
def results(dtype):
    layer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        y = norm(torch.nn.functional.gelu(layer(x)))
        q = y.view(4, 32, 4, 16).transpose(1, 2)
        z = torch.nn.functional.scaled_dot_product_attention(q, q, q) @ q.transpose(2, 3)
    z.float().square().mean().backward()
    return torch.cat([z.detach().float().flatten(), layer.weight.grad.flatten()])
exact, rounded = results(torch.float32), results(torch.bfloat16)
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
    return _product_works(limit) if any(name in limit for name in ("DEFAULT", "ALL", "BF16", "AMX")) else False


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
