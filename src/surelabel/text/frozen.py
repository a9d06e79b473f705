"""Lower layers of an encoder that training leaves unchanged: they run once per text, and their output is kept."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from surelabel._core import progress
from surelabel._core.storage import atomic_file
from surelabel._core.validation import IntArray
from surelabel.exceptions import InvalidInputError
from surelabel.text.batching import Ids, lengths_of, mask_of, padded_batches

_TOKENS_PER_BATCH = 2_048
# The two parts of an encoder, one after the other, agree with the whole to this in float32.
_SAME = 1e-3


def _block_list(encoder: nn.Module) -> tuple[nn.Module, str]:
    """Return the module that holds the encoder's transformer blocks, and the name of the list there."""
    lists = [(name, module) for name, module in encoder.named_modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        return encoder, ""
    path = max(lists, key=lambda entry: len(entry[1]))[0]
    parent, _, name = path.rpartition(".")
    return encoder.get_submodule(parent), name


def blocks_of(encoder: nn.Module) -> list[nn.Module]:
    """Return the encoder's transformer blocks, the lowest first: its longest list of modules."""
    parent, name = _block_list(encoder)
    return list(getattr(parent, name)) if name else []


def freeze_lower(encoder: nn.Module, n_frozen: int) -> None:
    """Exempt embeddings, the lowest blocks and what all blocks share from training."""
    n_blocks = len(blocks_of(encoder))
    if n_frozen > n_blocks:
        raise InvalidInputError(
            f"The 'frozen_layers' setting must be at most the model's number of layers, {n_blocks}. "
            f"Got {n_frozen} instead."
        )
    encoder.requires_grad_(False)
    for block in blocks_of(encoder)[n_frozen:]:
        block.requires_grad_(True)


class _Given(nn.Module):
    """Stands in for the embeddings: passes on the states that it receives."""

    def forward(self, *_: Any, inputs_embeds: torch.Tensor, **__: Any) -> torch.Tensor:
        """Return the states."""
        return inputs_embeds


@contextlib.contextmanager
def _replaced(parent: nn.Module, name: str, module: nn.Module) -> Iterator[None]:
    """Replace a submodule within the block."""
    original = getattr(parent, name)
    setattr(parent, name, module)
    try:
        yield
    finally:
        setattr(parent, name, original)


def lower_only(encoder: nn.Module, n_frozen: int) -> contextlib.AbstractContextManager[None]:
    """Make the encoder end after its lowest blocks, within the block."""
    return _replaced(*_block_list(encoder), nn.ModuleList(blocks_of(encoder)[:n_frozen]))


@contextlib.contextmanager
def upper_only(encoder: nn.Module, n_frozen: int) -> Iterator[None]:
    """Make the encoder start from states that come as `inputs_embeds`, after its lowest blocks, within the block."""
    upper = nn.ModuleList(blocks_of(encoder)[n_frozen:])
    with _replaced(*_block_list(encoder), upper), _replaced(encoder, "embeddings", _Given()):
        yield


def check_split(encoder: nn.Module, n_frozen: int) -> None:
    """Raise if the two parts of the encoder, one after the other, do not compute what the whole does."""
    was_training = encoder.training
    encoder.eval()
    ids, mask = torch.arange(5, 17).reshape(2, 6), torch.ones(2, 6, dtype=torch.long)
    mask[1, 4:] = 0
    try:
        with torch.inference_mode():
            whole = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            with lower_only(encoder, n_frozen):
                states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            with upper_only(encoder, n_frozen):
                joined = encoder(inputs_embeds=states, attention_mask=mask).last_hidden_state
        same = bool((joined - whole)[mask.bool()].abs().max() <= _SAME)
    except (AttributeError, TypeError, RuntimeError, ValueError, IndexError):
        same = False
    encoder.train(was_training)
    if not same:
        raise InvalidInputError(
            f"The 'frozen_layers' setting needs an encoder whose layers can run apart, as BERT's and MPNet's can. "
            f"{type(encoder).__name__} cannot; set frozen_layers=0."
        )


@dataclasses.dataclass(frozen=True)
class KeptStates:
    """The frozen layers' output, memory-mapped float16 (n_tokens, hidden_size), and the rows of each text."""

    values: Any
    starts: IntArray
    lengths: IntArray

    def __getitem__(self, text: int) -> Any:
        """Return the states of a text, (n_tokens, hidden_size)."""
        return self.values[self.starts[text] : self.starts[text] + self.lengths[text]]

    def in_order(self, order: IntArray) -> KeptStates:
        """Return the states of the same texts in another order."""
        return KeptStates(self.values, self.starts[order], self.lengths[order])


def keep_states(encoder: Any, n_frozen: int, ids: Ids, file: Path, *, padding: int, bfloat16: bool) -> KeptStates:
    """Run the frozen layers over encoded texts, or read the file of an earlier run with these texts and layers."""
    lengths = lengths_of(ids)
    starts = np.cumsum(lengths) - lengths
    shape = (int(lengths.sum()), encoder.config.hidden_size)
    if not file.is_file():
        with atomic_file(file) as temporary:
            values = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
            _fill(encoder, n_frozen, ids, KeptStates(values, starts, lengths), padding=padding, bfloat16=bfloat16)
            values.flush()
            del values
    values = np.load(file, mmap_mode="r", allow_pickle=False)
    if values.shape != shape or values.dtype != np.float16:
        raise InvalidInputError(f"{file} holds states of other texts. Remove it, or choose another checkpoint folder.")
    return KeptStates(values, starts, lengths)


def _fill(encoder: nn.Module, n_frozen: int, ids: Ids, kept: KeptStates, *, padding: int, bfloat16: bool) -> None:
    """Write the states of all texts, batches of similar length at a time."""
    device = next(encoder.parameters()).device
    encoder.eval()
    with (
        torch.inference_mode(),
        torch.autocast(device.type, torch.bfloat16, enabled=bfloat16),
        lower_only(encoder, n_frozen),
        progress.step(f"running the frozen layers on {len(ids):,} texts", len(ids)) as advance,
    ):
        for rows, batch in padded_batches(ids, padding, _TOKENS_PER_BATCH, device=device):
            states = encoder(input_ids=batch["input_ids"], attention_mask=mask_of(**batch).long()).last_hidden_state
            for row, one in zip(rows, states.to(torch.float16).cpu().numpy(), strict=True):
                kept[row][:] = one[: kept.lengths[row]]
            advance(len(rows))


def states_name(identity: str, ids: Ids) -> str:
    """Return the file name for the states of some texts: it changes with the texts, the model and the layers."""
    digest = hashlib.sha256(identity.encode())
    for one in ids:
        digest.update(len(one).to_bytes(8, "little") + one.tobytes())
    return f"states-{digest.hexdigest()[:24]}.npy"
