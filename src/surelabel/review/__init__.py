"""From answers to decisions: queues of texts, decisions in a database, and what they teach.

`ReviewStore` keeps texts and decisions, `take_in` brings the texts of a file into their queues, `export` writes what
was decided. `surelabel.service` shows the queues in a browser.

>>> import tempfile
>>> from surelabel import corpora, train
>>> from surelabel.review import Decision, Incoming, IncomingSettings, NewText, Offer, QUEUES, ReviewStore, ReviewText
>>> from surelabel.review import BlindFigures, CalibrationUpdate, ClosingFigures, Imported, ModelFigures, QueueCounts
>>> from surelabel.review import argilla_records, from_label_studio, label_studio_tasks
>>> from surelabel.review import blind_figures, closing_figures, export, take_in, update_calibration
>>> corpus = corpora.load("synthetic", n_texts=600, n_labels=5)
>>> bundle = train(corpus, measure="LogLoss", compare=False)
>>> folder = tempfile.mkdtemp()
>>> store = ReviewStore(f"{folder}/reviews.sqlite")

Bring texts in, half of them for the blind check:

>>> test = corpus.part("test")
>>> texts = [Incoming(id, text, {"id": id}) for id, text in zip(test.ids, test.texts, strict=True)]
>>> take_in(store, bundle, texts, "model 1", IncomingSettings(significance="0.1", check_share=0.5))
120

Decide what waits, as people who know the labels would:

>>> truth = dict(zip(test.ids, test.label_sets, strict=True))
>>> QUEUES
('choose', 'read', 'check', 'filed')
>>> for queue in QUEUES[:3]:
...     while leased := store.lease("ann", queue, n=50):
...         for text in leased:
...             decision = store.decide(f"key {text.number}", text.number, "ann", "edit", sorted(truth[text.id]))
>>> isinstance(text, ReviewText), isinstance(decision, Decision), decision.is_blind
(True, True, True)
>>> closing = closing_figures(store.decisions())
>>> isinstance(closing, ClosingFigures), closing.by_reviewer == {"ann": closing.n_decided}
(True, True)

See what the blind check says about the model, make a new calibration from it, and export:

>>> blind = store.decisions(blind=True)
>>> checked = [store.text(decision.number).text for decision in blind]
>>> figures = blind_figures(blind, bundle.predict_p(checked, [decision.chosen for decision in blind]))
>>> isinstance(figures, BlindFigures), figures.significance, figures.n_texts == len(blind)
(True, '0.1', True)
>>> update = update_calibration(store, bundle, significance="0.1", least=20)
>>> isinstance(update, CalibrationUpdate), isinstance(update.after, ModelFigures)
(True, True)
>>> update.bundle.predictor.calibration_.n_texts == update.n_texts == len(blind)
True
>>> export(store, f"{folder}/decided.csv")
120

Other tools take what waits, here nothing any more, and give decisions back:

>>> label_studio_tasks(store), list(argilla_records(store, bundle)), from_label_studio(store, [])
([], [], Imported(n_saved=0, n_known=0, problems=()))
"""

from surelabel._core.extras import of_extra

with of_extra("review", "A review"):
    from surelabel.review.exporting import export, exported_rows
    from surelabel.review.figures import BlindFigures, ClosingFigures, blind_figures, closing_figures
    from surelabel.review.incoming import Incoming, IncomingSettings, take_in
    from surelabel.review.interchange import Imported, argilla_records, from_label_studio, label_studio_tasks
    from surelabel.review.learning import CalibrationUpdate, ModelFigures, update_calibration, with_reviews
    from surelabel.review.queues import QUEUES, Decision, NewText, Offer, QueueCounts, ReviewText, offer_of
    from surelabel.review.store import ReviewStore

__all__ = [
    "QUEUES",
    "BlindFigures",
    "CalibrationUpdate",
    "ClosingFigures",
    "Decision",
    "Imported",
    "Incoming",
    "IncomingSettings",
    "ModelFigures",
    "NewText",
    "Offer",
    "QueueCounts",
    "ReviewStore",
    "ReviewText",
    "argilla_records",
    "blind_figures",
    "closing_figures",
    "export",
    "exported_rows",
    "from_label_studio",
    "label_studio_tasks",
    "offer_of",
    "take_in",
    "update_calibration",
    "with_reviews",
]
