"""Draw the pictures of the documentation that no measurement is needed for: `python docs/drawings.py`.

The same bytes on every machine. Each picture has a white ground of its own and says everything in shapes and words too,
so that it can be read in light and dark, and in grey.
"""

import argparse
from pathlib import Path

# The example of docs/search.md: flips of four labels, cheapest first, and what they may sum to.
FLIPS = {"wheat": 2, "corn": 4, "trade": 8, "grain": 9}
BUDGET = 10.5
# Pixels: distance of columns and rows, and size of a box.
_COLUMN, _ROW, _WIDE, _HIGH = 192, 84, 148, 46
_TIP = "viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'"


def children(node: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the two children of a set of flips: the next flip added, and the last one replaced by the next."""
    if not node:
        return [("add", (0,))]
    following = node[-1] + 1
    if following == len(FLIPS):
        return []
    return [("add", (*node, following)), ("replace", (*node[:-1], following))]


def cost(node: tuple[int, ...]) -> int:
    """Return what a set of flips costs, in tenths."""
    return sum(list(FLIPS.values())[place] for place in node)


def visited(node: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the nodes that a walk looks at: children of a node over budget are not among them."""
    below = children(node) if cost(node) <= BUDGET else []
    return [node, *(found for _, child in below for found in visited(child))]


def _places() -> dict[tuple[int, ...], tuple[int, int]]:
    """Return column and row of each visited node: additions go right, replacements down."""
    places: dict[tuple[int, ...], tuple[int, int]] = {}
    rows = 0

    def put(node: tuple[int, ...], column: int, row: int) -> None:
        nonlocal rows
        places[node] = (column, row)
        rows = max(rows, row)
        for kind, child in children(node) if cost(node) <= BUDGET else []:
            put(child, column + 1, row) if kind == "add" else put(child, column, rows + 1)

    put((), 0, 0)
    return places


def _box(node: tuple[int, ...], x: int, y: int) -> str:
    """Return one node: a grey box for a member, a dashed one for a miss."""
    inside = cost(node) <= BUDGET
    style = 'fill="#e4e4e4" stroke="#222" stroke-width="1.6"'
    if not inside:
        style = 'fill="#fff" stroke="#222" stroke-width="1.2" stroke-dasharray="4 3"'
    names = " ".join(list(FLIPS)[place] for place in node) or "no flip"
    sign = "" if inside else " over"
    middle = x + _WIDE // 2
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="5" {style}/>'
        f'<text x="{middle}" y="{y + 19}" font-weight="600">{names}</text>'
        f'<text x="{middle}" y="{y + 37}">{cost(node) / 10:.1f}{sign}</text>'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int], kind: str) -> str:
    """Return an arrow between two boxes with its word: to the right for an addition, down for a replacement."""
    (x, y), (to_x, to_y) = start, end
    line = 'stroke="#222" stroke-width="1.2" marker-end="url(#tip)"'
    if kind == "add":
        middle = y + _HIGH // 2
        word = f'<text x="{(x + _WIDE + to_x) // 2}" y="{middle - 6}" class="word">add</text>'
        return f'<line x1="{x + _WIDE}" y1="{middle}" x2="{to_x - 2}" y2="{middle}" {line}/>{word}'
    middle = x + _WIDE // 2
    word = f'<text x="{middle + 6}" y="{to_y - 12}" class="word" text-anchor="start">replace</text>'
    return f'<line x1="{middle}" y1="{y + _HIGH}" x2="{middle}" y2="{to_y - 2}" {line}/>{word}'


def search_tree() -> str:
    """Return the tree of subsets that docs/search.md walks through."""
    corners = {node: (20 + column * _COLUMN, 20 + row * _ROW) for node, (column, row) in _places().items()}
    width = max(x for x, _ in corners.values()) + _WIDE + 20
    height = max(y for _, y in corners.values()) + _HIGH + 58
    found = [node for node in corners if cost(node) <= BUDGET]
    arrows = [
        _arrow(corners[node], corners[child], kind)
        for node in found
        for kind, child in children(node)
        if child in corners
    ]
    boxes = [_box(node, x, y) for node, (x, y) in corners.items()]
    told = (
        f"budget {BUDGET / 10:.2f}: {len(found)} members (grey), {len(corners) - len(found)} misses (dashed), "
        f"{2 ** len(FLIPS) - len(corners)} of {2 ** len(FLIPS)} never looked at"
    )
    style = "font-family='sans-serif' font-size='14' fill='#111' text-anchor='middle'"
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img' {style}>",
        f"<title>The tree of sets of flips</title><desc>{told}</desc>",
        "<style>.word { font-size: 11px; font-style: italic; }</style>",
        f"<defs><marker id='tip' {_TIP}><path d='M0 0 L8 4 L0 8 z' fill='#222'/></marker></defs>",
        f"<rect width='{width}' height='{height}' rx='8' fill='#fff'/>",
        *arrows,
        *boxes,
        f"<text x='{width // 2}' y='{height - 22}'>{told}</text>",
        "</svg>",
    ]
    return "\n".join(lines).replace("'", '"') + "\n"


PICTURES = {"search-tree.svg": search_tree}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")
