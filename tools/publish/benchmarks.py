"""Parts of pages that show what benchmarks measured, from their files under `results/`."""

from __future__ import annotations

from typing import Any, TypeAlias

from surelabel._core.formatting import count, markdown_table

Document: TypeAlias = dict[str, Any]


def engine(document: Document) -> str:
    """Tabulate the paper's Hamming ball beside the exact search on the same texts."""
    rows = [
        (source.removesuffix(", searches"), name, count(one["texts"]), *(count(one[key]) for key in _SEARCHES))
        for source, figures in document.items()
        if source.endswith(", searches")
        for name, one in figures.items()
    ]
    header = ("corpus", "level and t", "texts", "Hamming ball, µs a text", "exact search, µs a text", "times as fast")
    return markdown_table(header, rows, 2) if rows else ""


_SEARCHES = ("ball", "exact", "exact is faster")


def mixture(document: Document) -> str:
    """Tabulate mean sizes with `LogLoss` and `Mixture` on the same parts."""
    rows = document.get("rows", [])
    if not rows or not {"corpus", "LogLoss", "Mixture"} <= set(rows[0]):
        return ""
    cells = [(row["corpus"], count(row["LogLoss"]), count(row["Mixture"])) for row in rows]
    return markdown_table(("corpus", "mean size at 0.05, LogLoss", "Mixture"), cells)


def eurlex(document: Document) -> str:
    """Tabulate what a run on 4,271 labels took, and say what it gave."""
    if not document.get("runs"):
        return ""
    run, alone = document["runs"][0], document.get("omikuji_alone", {})
    rows = [
        (name, f"{step['processor_seconds'] / 60:.1f}", f"{step['peak_gib']:.1f}")
        for name, step in [*run["steps"].items(), ("omikuji alone, all steps", alone.get("steps"))]
        if step
    ]
    table = markdown_table(("step", "processor minutes", "peak memory, GiB"), rows)
    compared = [
        f"{name} {run['model'][key]:.3f}" + (f" ({alone[key]:.3f} by omikuji alone)" if key in alone else "")
        for name, key in (("micro-F1", "f1_micro_test"), ("precision of the first five", "precision_at_5"))
    ]
    settings = "".join(f" `--setting {setting}`" for setting in run["settings"])
    how = f", with{settings}" if settings else ""
    words = f"On EURLEX57K, 57,000 EU laws with its own parts and 4,271 labels{how}: {', '.join(compared)}."
    return f"{words}\n\n{table}"


def annif(document: Document) -> str:
    """Tabulate figures of a real Annif beside ours, and say what a library gains."""
    if not document.get("surelabel"):
        return ""
    rows = [
        (name, *(f"{found[key]:.4f}" for key in ("annif", "surelabel")))
        for name, found in document["agreement"].items()
    ]
    table = markdown_table(("EURLEX57K, test part", "annif eval", "surelabel evaluate"), rows)
    gained = document["surelabel"][0]["decisions"]
    shares = ", ".join(f"{name} {100 * gained[name]['share']:.0f} %" for name in ("file", "choose", "read"))
    return f"{table}\n\nOf the test texts: {shares}."


def taggers(document: Document) -> str:
    """Tabulate what taggers that we did not train give: filed texts and lists, over random divisions."""
    rows = []
    for name, corpus in document.get("corpora", {}).items():
        found = corpus.get("summary")
        if found:
            filed, seen = found["wrong_file"], found["missed_seen"]
            shares = (filed["share_of_texts"], filed["mean"], seen["mean"])
            cells = ["-" if share is None else f"{100 * share:.1f} %" for share in shares]
            rows.append((name, *cells, f"{found['mean_list']:.1f}"))
    header = ("corpus", "filed", "wrong among them", "true tags missed in lists", "tags in a list")
    return markdown_table(header, rows) if rows else ""


def learn(document: Document) -> str:
    """Tabulate generations that learn from a review: errors of filing and lists, and micro-F1."""
    names = {
        "main": "learns; audits calibrate",
        "a": "never learns",
        "b": "decided texts calibrate too (wrong)",
        "d": "old texts calibrate too",
        "uncertain": "uncertain texts first",
    }
    found = document.get("figures", [])
    last = {(one["corpus"], one["order"], one["variant"]): one for one in found}
    rows = []
    for (corpus, order, variant), one in last.items():
        cells = []
        for figure in ("filed_wrong", "missed", "f1"):
            value = one.get(figure)
            bad = "**" if figure in one.get("over", ()) else ""
            cells.append(f"{bad}{value['mean']:.3f} ± {value['error']:.3f}{bad}" if value else "-")
        rows.append((corpus, order, names.get(variant, variant), *cells))
    header = ("corpus", "order", "rule", "wrong of filed", "missed in lists", "micro-F1")
    return markdown_table(header, rows, 3) if rows else ""
