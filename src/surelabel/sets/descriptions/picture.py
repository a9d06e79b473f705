"""A description as a small SVG: one bar per label, as long as the share of members that have it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from surelabel._core.wording import printable, share_words

if TYPE_CHECKING:
    from surelabel.sets.descriptions.description import Description, LabelGroup, LabelShare

_WIDTH, _ROW, _LEFT, _BAR = 420, 20, 160, 150
_MOST_LETTERS = 22
_MOST_ROWS = 40
# On its own, outside a page, a file has no text colour to take: dark on light, light on dark.
_STYLE = (
    "svg.surelabel-description:root{color:#111}"
    "@media(prefers-color-scheme:dark){svg.surelabel-description:root{color:#eee;background:#111}}"
)


def _safe(text: str) -> str:
    """Return a text that markup cannot break out of."""
    return html.escape(printable(text))


def _cut(text: str) -> str:
    """Cut a long name."""
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


class _Canvas:
    """Rows of text and bars, from the top down."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 6

    def words(self, text: str, *, x: int = 8, weight: str = "normal") -> None:
        """Write a row of text."""
        self.y += _ROW
        self.parts.append(f'<text x="{x}" y="{self.y - 6}" font-weight="{weight}">{_safe(text)}</text>')

    def bar(self, name: str, lower: float, upper: float, said: str) -> None:
        """Draw a label with a bar: dark up to the lower bound of its share, light up to the upper."""
        self.y += _ROW
        top = self.y - _ROW + 4
        self.parts.append(f'<text x="{_LEFT - 8}" y="{self.y - 6}" text-anchor="end">{_safe(_cut(name))}</text>')
        self.parts.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_BAR}" height="12" fill="none" stroke="currentColor" opacity="0.45"/>'
        )
        for share, opacity in ((upper, 0.35), (lower, 0.85)):
            self.parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{max(_BAR * share, 1):.1f}" height="12" opacity="{opacity}"/>'
            )
        self.parts.append(f'<text x="{_LEFT + _BAR + 8}" y="{self.y - 6}">{_safe(said)}</text>')

    def bracket(self, top: int) -> None:
        """Draw the line that holds a group together."""
        self.parts.append(
            f'<path d="M8 {top + 2}H4V{self.y - 2}H8" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        )


def _bars(canvas: _Canvas, shares: tuple[LabelShare, ...]) -> None:
    """Draw labels with their shares."""
    for share in shares:
        canvas.bar(str(share.label), share.lower, share.upper, share_words(share.lower, share.upper))


def _group(canvas: _Canvas, group: LabelGroup) -> None:
    """Draw a group with a budget."""
    if not group.shares:
        canvas.words(group.words(first=not canvas.parts))
        return
    if group.is_free:
        _bars(canvas, group.shares)
        return
    top = canvas.y
    canvas.words(f"{group.how_many} these:", x=14)
    _bars(canvas, group.shares)
    canvas.bracket(top)


def draw(description: Description, name: str) -> str:
    """Return the picture as one SVG element."""
    canvas = _Canvas()
    for label in description.certain[:_MOST_ROWS]:
        canvas.bar(str(label), 1.0, 1.0, "certain")
    if len(description.certain) > _MOST_ROWS:
        canvas.words(f"certain: {len(description.certain) - _MOST_ROWS:,} more")
    for group in description.groups:
        _group(canvas, group)
    # Words for what has no bar: limits over all labels, and the number of label-sets.
    n_limits = (description.n_labels_bounds is not None) + (description.most_changes is not None)
    statements = description.statements()
    if description.size_bounds[1] > 0 and not description.groups:
        n_limits += 1
    for statement in statements[len(statements) - 1 - n_limits : -1]:
        canvas.words(statement if len(statement) < 60 else statement[:59] + "…")
    canvas.words(statements[-1], weight="bold")
    height = canvas.y + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="surelabel-description" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc" '
        'fill="currentColor" font-size="13" font-family="system-ui, sans-serif">'
        f'<title id="{name}-title">Plausible label-sets</title><desc id="{name}-desc">{_safe(str(description))}</desc>'
        f"<style>{_STYLE}</style>{''.join(canvas.parts)}</svg>\n"
    )
