"""Answers in the form of Label Studio: one prediction per plausible label-set, its score is the p-value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

_TAG = re.compile(r"<\s*(\w+)\b([^>]*)>")
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclasses.dataclass(frozen=True)
class LabelConfig:
    """Which control of a labelling interface takes the labels, which object shows the text, and which field holds it.

    Examples
    --------
    >>> LabelConfig.parse('<View><Text name="body" value="$content"/><Choices name="tags" toName="body"/></View>')
    LabelConfig(from_name='tags', to_name='body', field='content')
    """

    from_name: str = "labels"
    to_name: str = "text"
    field: str = "text"

    @classmethod
    def parse(cls, xml: str | None) -> LabelConfig:
        """Return the names of an interface; the usual ones if it has no choices or no text."""
        tags = [
            (name.lower(), {key: double or single for key, double, single in _ATTRIBUTE.findall(rest)})
            for name, rest in _TAG.findall(xml or "")
        ]
        choices = next((values for name, values in tags if name == "choices"), {})
        texts = {values.get("name"): values for name, values in tags if name in {"text", "hypertext"}}
        to_name = choices.get("toName") or next((name for name in texts if name), None) or cls.to_name
        field = texts.get(to_name, {}).get("value", "").removeprefix("$") or cls.field
        return cls(choices.get("name") or cls.from_name, to_name, field)


def predictions_of(
    label_sets: Iterable[tuple[Sequence[str], float]], model: str, config: LabelConfig | None = None
) -> list[dict[str, Any]]:
    """Return one prediction per label-set, given with their p-values.

    Examples
    --------
    >>> [prediction] = predictions_of([(("gas", "oil"), 0.2)], "surelabel 1")
    >>> prediction["score"], prediction["result"][0]["value"]
    (0.2, {'choices': ['gas', 'oil']})
    """
    config = config or LabelConfig()
    control = {"from_name": config.from_name, "to_name": config.to_name, "type": "choices"}
    return [
        {"model_version": model, "score": p_value, "result": [{**control, "value": {"choices": list(labels)}}]}
        for labels, p_value in label_sets
    ]
