"""The one way in which the neural classifiers are trained: transformers' Trainer.

Batches of similar length in an order that depends on seed and epoch alone; early stopping on the validation
micro-F1; the best epoch's weights at the end; checkpoints from which a killed run resumes and ends with the same
weights. A checkpoint counts only when it is complete: a file `complete` is written into it last.

Under torchrun or `accelerate launch` all processes call `fit` with the same texts, share each batch among them, and end
with the same weights; the first one writes checkpoints.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
import transformers
from accelerate import PartialState
from accelerate.data_loader import prepare_data_loader
from accelerate.utils import broadcast_object_list
from torch import nn
from torch.utils.data import DataLoader
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_utils import EvalPrediction

from surelabel._core.storage import atomic_file
from surelabel.exceptions import TrainingError
from surelabel.text.base import History
from surelabel.text.batching import BucketedBatches, Examples, pad
from surelabel.text.inputs import FitOptions

logger = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 600.0
"""Within an epoch that takes longer, a checkpoint is written this often."""

_RUN, _COMPLETE = "run.json", "complete"


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a network is trained; only a run with the same `settings` and data continues from a checkpoint."""

    settings: dict[str, Any]
    batch_size: int
    epochs: int
    patience: int
    seed: int
    padding: int
    averaging: float = 0.0
    schedule: str = "constant"
    warmup: float = 0.0
    max_gradient: float = 0.0
    bfloat16: bool = False


class Averaged(nn.Module):
    """A network and the running average of its weights, which stands in for it outside training."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.average = copy.deepcopy(network).requires_grad_(False)

    def update(self, decay: float, step: int) -> None:
        """Move the average towards the network; early averages forget faster."""
        weight = 1 - min(decay, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), weight)

    def forward(
        self, input_ids: torch.Tensor, lengths: torch.Tensor, labels: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """Compute with the network in training, with the average in evaluation."""
        outputs: dict[str, torch.Tensor] = (self.network if self.training else self.average)(input_ids, lengths, labels)
        return outputs


def processor_has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 itself (AVX-512 BF16 or AMX)."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name, lambda: False)()) for name in checks)


class _Callback(TrainerCallback):
    """Averages weights, asks for checkpoints, and marks complete ones."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.last_save = time.monotonic()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Average the weights."""
        network = others["model"]
        if isinstance(network, Averaged):
            network.update(self.plan.averaging, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Ask for a checkpoint within a long epoch."""
        if not args.save_only_model and time.monotonic() - self.last_save > CHECKPOINT_SECONDS:
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Mark the checkpoint as complete."""
        self.last_save = time.monotonic()
        if args.should_save:
            with atomic_file(Path(args.output_dir) / f"checkpoint-{state.global_step}" / _COMPLETE) as path:
                path.write_text("complete\n", encoding="utf-8")


class _Trainer(Trainer):
    """A Trainer with bucketed batches."""

    plan: Plan

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the training batches of an epoch."""
        examples: Any = self.train_dataset
        n_processes, process = self.accelerator.num_processes, self.accelerator.process_index
        size = self._train_batch_size if n_processes == 1 else self.plan.batch_size
        batches = BucketedBatches(examples.lengths, size, self.plan.seed, process, n_processes)
        loader: DataLoader[Any] = DataLoader(examples, batch_sampler=batches, collate_fn=self.data_collator)
        if n_processes == 1:
            return self.accelerator.prepare(loader)
        # Each batch is divided among the processes already.
        return prepare_data_loader(loader, self.accelerator.device, 1, 0, put_on_device=True)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        """Return the validation batches; the texts are in order of length already."""
        examples: Any = self.eval_dataset
        loader: DataLoader[Any] = DataLoader(
            examples, batch_size=self.args.eval_batch_size, collate_fn=self.data_collator
        )
        return self.accelerator.prepare(loader)


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


def _arguments(plan: Plan, folder: Path, options: FitOptions) -> TrainingArguments:
    """Return the Trainer's arguments."""
    progress = sys.stderr.isatty() if options.progress is None else options.progress
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=max(1, plan.batch_size // _n_processes()),
        per_device_eval_batch_size=2 * plan.batch_size,
        num_train_epochs=plan.epochs,
        lr_scheduler_type=plan.schedule,
        warmup_steps=plan.warmup,
        max_grad_norm=plan.max_gradient,
        bf16=plan.bfloat16,
        use_cpu=not torch.accelerator.is_available(),
        ddp_find_unused_parameters=False,
        seed=plan.seed,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        save_only_model=options.checkpoint_folder is None,
        load_best_model_at_end=True,
        metric_for_best_model="progress",
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        label_names=["labels"],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=not progress,
        report_to="none",
    )


@contextlib.contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Leave the process's random numbers as they were: Trainer seeds all of them."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - what Trainer seeds
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


def _n_processes() -> int:
    """Return how many processes train together: 1, unless torchrun or accelerate has started this one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextlib.contextmanager
def first_process_first() -> Iterator[None]:
    """Let the first of several processes go through the block before the others."""
    if _n_processes() == 1:
        yield
        return
    with PartialState(cpu=not torch.accelerator.is_available()).main_process_first():
        yield


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end; of several processes the first one's."""
    if _n_processes() == 1:
        with tempfile.TemporaryDirectory(prefix="surelabel-") as name:
            yield Path(name)
        return
    if _n_processes() != int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
        raise TrainingError("Processes on several machines need a 'checkpoint_folder' on a disk that all of them see.")
    state = PartialState(cpu=not torch.accelerator.is_available())
    with contextlib.ExitStack() as opened:
        names: list[str | None] = [None]
        if state.is_main_process:
            names = [opened.enter_context(tempfile.TemporaryDirectory(prefix="surelabel-"))]
        broadcast_object_list(names)
        yield Path(str(names[0]))
        state.wait_for_everyone()


@contextlib.contextmanager
def _checkpoint_folder(options: FitOptions, identity: str) -> Iterator[Path]:
    """Yield the folder for checkpoints: the requested one, if it belongs to this run, or a temporary one."""
    if options.checkpoint_folder is None:
        with passing_folder() as folder:
            yield folder
        return
    with first_process_first():
        _prepare_folder(options.checkpoint_folder, options, identity)
    yield options.checkpoint_folder


def _prepare_folder(folder: Path, options: FitOptions, identity: str) -> None:
    """Make a folder for checkpoints, or check that an existing one belongs to this run."""
    folder.mkdir(parents=True, exist_ok=True)
    if not options.resume and int(os.environ.get("RANK", "0")) == 0:
        for old in folder.glob("checkpoint-*"):
            shutil.rmtree(old)
        (folder / _RUN).unlink(missing_ok=True)
    if (folder / _RUN).is_file():
        if json.loads((folder / _RUN).read_text(encoding="utf-8")).get("identity") != identity:
            raise TrainingError(
                f"The checkpoints in {folder} belong to a run with other settings, texts or labels. "
                f"Choose another checkpoint folder, or pass resume=False to start again."
            )
    else:
        with atomic_file(folder / _RUN) as path:
            path.write_text(json.dumps({"identity": identity}) + "\n", encoding="utf-8")


def _last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint; remove what a killed run left half-written."""
    whole = []
    for checkpoint in folder.glob("checkpoint-*"):
        if (checkpoint / _COMPLETE).is_file():
            whole.append(checkpoint)
        else:
            shutil.rmtree(checkpoint)
    return max(whole, key=lambda checkpoint: int(checkpoint.name.split("-")[1]), default=None)


def _was_finished(state: dict[str, Any], plan: Plan) -> bool:
    """Whether a checkpoint's run had nothing left to do: Trainer itself would start one epoch more."""
    stopping = state.get("stateful_callbacks", {}).get("EarlyStoppingCallback", {}).get("attributes", {})
    out_of_patience = stopping.get("early_stopping_patience_counter", 0) >= plan.patience
    return bool(out_of_patience or state["global_step"] >= state["max_steps"])


def _history(log: list[dict[str, Any]]) -> History:
    """Return loss and validation micro-F1 of each epoch from Trainer's log."""
    epochs: dict[int, dict[str, float]] = {}
    for entry in log:
        epoch = round(entry.get("epoch", 0))
        row = epochs.setdefault(epoch, {"epoch": epoch})
        if "loss" in entry:
            row["training_loss"] = float(entry["loss"])
        if "eval_micro_f1" in entry:
            row["validation_micro_f1"] = float(entry["eval_micro_f1"])
            row["validation_loss"] = float(entry["eval_loss"])
    return [row for row in epochs.values() if "validation_micro_f1" in row]


def _collate(padding: int, examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return a batch of examples as tensors."""
    batch = pad([example["ids"] for example in examples], padding)
    batch["labels"] = torch.from_numpy(np.stack([example["labels"] for example in examples])).float()
    if "states" in examples[0]:
        batch["states"] = torch.nn.utils.rnn.pad_sequence(
            [torch.from_numpy(np.asarray(example["states"], dtype=np.float32)) for example in examples],
            batch_first=True,
        )
    return batch


def train(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    parts: tuple[Examples, Examples],
    plan: Plan,
    options: FitOptions,
) -> tuple[nn.Module, History]:
    """Train a network on the first part; the second decides when to stop. Return the best epoch's, and the history."""
    settings = json.dumps(plan.settings, sort_keys=True, default=str)
    identity = hashlib.sha256(f"{settings} {parts[0].digest()} {parts[1].digest()}".encode()).hexdigest()
    training, validation = parts
    wrapped = Averaged(network) if plan.averaging else network
    with _checkpoint_folder(options, identity) as folder, _own_random_numbers(), quiet_library():
        trainer = _Trainer(
            model=wrapped,
            args=_arguments(plan, folder, options),
            train_dataset=training,
            eval_dataset=validation.in_order_of_length(),
            data_collator=lambda examples: _collate(plan.padding, examples),
            compute_metrics=_measure,
            callbacks=[EarlyStoppingCallback(plan.patience), _Callback(plan)],
            optimizers=(optimizer, None),
        )
        trainer.plan = plan
        trainer.remove_callback(PrinterCallback)
        with first_process_first():
            checkpoint = _last_checkpoint(folder)
        state = None
        if checkpoint is not None:
            state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        if state is not None and _was_finished(state, plan):
            weights = folder / f"checkpoint-{state['best_global_step']}" / "model.safetensors"
            safetensors.torch.load_model(wrapped, str(weights))
            log = state["log_history"]
        else:
            logger.info("training %d texts%s", len(training), f" from {checkpoint}" if checkpoint else "")
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            log = trainer.state.log_history
        trained = trainer.accelerator.unwrap_model(wrapped, keep_fp32_wrapper=False)
        best = trained.average if isinstance(trained, Averaged) else trained
        if not all(bool(torch.isfinite(parameter).all()) for parameter in best.parameters()):
            raise TrainingError("Training diverged: weights are not finite. Lower the learning rate.")
        return best.eval().requires_grad_(False), _history(log)
