"""`randinit`, `word2vec`, `bert`, `hybrid`, `blend`: each learns, is the same in any batch, explains, and is saved."""

import json
import logging

import numpy as np
import pytest

from surelabel import text
from surelabel.exceptions import InvalidInputError, TrainingError
from text_cases import CNN, LABELS, SMALL, log_loss

KINDS = ["randinit", "word2vec", "bert", "hybrid", "blend"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bert"])
def test_it_learns(fitted_kind, new, kind):
    texts, labels = new
    base = np.tile(labels.mean(axis=0), (len(labels), 1))
    probabilities = fitted_kind(kind).predict_proba(texts)
    assert log_loss(probabilities, labels) < 0.85 * log_loss(base, labels)
    assert fitted_kind(kind).history_


def test_the_loss_of_an_encoder_falls(fitted_kind):
    first, last = fitted_kind("bert").history_
    assert last["training_loss"] < first["training_loss"]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_change_nothing(fitted_kind, new, kind):
    texts = [*new[0][:20], "", "gold " * 300]
    together = fitted_kind(kind).predict_proba(texts)
    alone = np.concatenate([fitted_kind(kind).predict_proba([one]) for one in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up_to_the_log_odds(fitted_kind, new, kind):
    one = new[0][3]
    explained = fitted_kind(kind).explain(one, "oil")
    probability = fitted_kind(kind).predict_proba([one])[0, LABELS.index("oil")]
    assert explained.log_odds == pytest.approx(np.log(probability / (1 - probability)), abs=1e-3)
    assert sum(word.weight for word in explained.words) + explained.rest == pytest.approx(explained.log_odds)
    assert all(one[word.start : word.end] == word.word for word in explained.words)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_one_is_the_same(fitted_kind, new, kind, tmp_path):
    fitted_kind(kind).save(tmp_path / "saved")
    loaded = text.load(tmp_path / "saved")
    assert loaded.get_params() == fitted_kind(kind).get_params()
    assert loaded.label_names_ == LABELS
    assert loaded.history_ == fitted_kind(kind).history_
    np.testing.assert_array_equal(loaded.predict_proba(new[0]), fitted_kind(kind).predict_proba(new[0]))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # gensim leaves the file open
def test_word2vec_reads_files(training, validation, tmp_path):
    path = tmp_path / "vectors.txt"
    rows = {"gold": [1, 0, 2], "wheat": [0, 1, -1], "oil": [2, 2, 0]}
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items()]
    from surelabel.text.cnn import read_vectors

    path.write_text("\n".join(lines) + "\n")  # GloVe
    glove = read_vectors(path)
    path.write_text("\n".join(["3 3", *lines]) + "\n")  # word2vec
    word2vec = read_vectors(path, limit=2)
    assert list(glove.index_to_key) == ["gold", "wheat", "oil"]
    assert list(word2vec.index_to_key) == ["gold", "wheat"]
    np.testing.assert_array_equal(glove["wheat"], word2vec["wheat"])
    word2vec.save_word2vec_format(str(tmp_path / "vectors.bin"), binary=True)
    np.testing.assert_array_equal(read_vectors(tmp_path / "vectors.bin")["gold"], [1, 0, 2])
    settings = {**SMALL, "epochs": 1, "vectors": str(path), "embedding_size": 5}
    fitted = text.make("word2vec", **settings).fit(*training, validation=validation)
    assert fitted.predict_proba(["gold"]).shape == (1, 4)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # gensim leaves the file open
@pytest.mark.parametrize("content", [b"", b"no vectors here", b"2 3\ngold 1 2\n"])
def test_files_that_hold_no_vectors(tmp_path, content):
    from surelabel.text.cnn import read_vectors

    (tmp_path / "vectors").write_bytes(content)
    with pytest.raises(InvalidInputError, match="vectors"):
        read_vectors(tmp_path / "vectors")
    with pytest.raises(InvalidInputError, match="no file"):
        read_vectors(tmp_path / "absent")


def test_neural_kinds_need_validation_texts(training):
    with pytest.raises(InvalidInputError, match="validation"):
        text.make("randinit", **SMALL).fit(*training)


def test_a_model_that_is_not_there(training, validation, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InvalidInputError, match="config"):
        text.make("bert", model=str(tmp_path)).fit(*training, validation=validation)
    with pytest.raises(TrainingError, match="hub"):
        text.make("bert", model=str(tmp_path / "absent")).fit(*training, validation=validation)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("randinit", {"epochs": 0}), ("bert", {"pooling": "max"}), ("bert", {"precision": "bfloat16"}),
     ("hybrid", {"vector_weight": 0}), ("blend", {"of": "linear"}), ("blend", {"of": "linear,blend"}),
     ("blend", {"members": {"bert": {}}}), ("word2vec", {"vectors_scale": -1})],
)  # fmt: skip
def test_wrong_settings_are_named(kind, settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        text.make(kind, **settings)


def test_a_blend_is_better_than_its_members(fitted_kind):
    *members, blend = (entry["log_loss"] for entry in fitted_kind("blend").history_)
    assert blend < min(members)


def test_training_that_was_killed_continues(training, validation, tmp_path, caplog):
    settings = {**CNN, "epochs": 4, "patience": 10}
    whole = text.make("randinit", **settings).fit(*training, validation=validation, work_folder=tmp_path)
    (run,) = tmp_path.iterdir()
    checkpoints = sorted(run.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    (checkpoints[-1] / "trainer_state.json").write_text('{"best')  # killed while it was written
    caplog.set_level(logging.INFO)
    again = text.make("randinit", **settings).fit(*training, validation=validation, work_folder=tmp_path)
    assert f"continued from {checkpoints[0]}" in caplog.text
    assert max(entry["validation_micro_f1"] for entry in again.history_) == pytest.approx(
        max(entry["validation_micro_f1"] for entry in whole.history_), abs=0.1
    )


def test_other_settings_do_not_continue(training, validation, tmp_path):
    for seed in (0, 1):
        text.make("randinit", **SMALL, epochs=1, seed=seed).fit(*training, validation=validation, work_folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_training_leaves_random_numbers_alone(training, validation):
    import torch

    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    text.make("randinit", **SMALL, epochs=1).fit(*training, validation=validation)
    assert torch.equal(torch.rand(3), expected)


class TestBfloat16:
    """What decides is a product in a child process, never what the processor announces."""

    @pytest.fixture(autouse=True)
    def _announced(self, monkeypatch):
        import torch

        from surelabel.text import training

        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        training._product_works.cache_clear()
        yield
        training._product_works.cache_clear()

    @pytest.mark.parametrize(
        "child", ["import os; os.kill(os.getpid(), 4)", "raise SystemExit(1)", "import time; time.sleep(30)"]
    )
    def test_a_product_that_fails_means_float32(self, child, monkeypatch, caplog):
        from surelabel.text import training

        monkeypatch.setattr(training, "_PRODUCTS", child)
        monkeypatch.setattr(training, "_PRODUCT_SECONDS", 1)
        assert not training.has_bfloat16()
        assert not training.has_bfloat16()
        assert len(caplog.records) == 1
        assert "float32" in caplog.text

    def test_an_encoder_is_then_trained_and_computed_in_float32(
        self, monkeypatch, caplog, training, validation, tiny_encoder, tmp_path
    ):
        import shutil

        import torch

        from surelabel.text import training as library

        shutil.copytree(tiny_encoder, tmp_path / "encoder")
        config = tmp_path / "encoder" / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "dtype": "bfloat16"}))
        monkeypatch.setattr(library, "_PRODUCTS", "import os; os.kill(os.getpid(), 9)")
        fits = [
            text.make("bert", model=str(tmp_path / "encoder"), epochs=1, precision=precision).fit(
                *training, validation=validation
            )
            for precision in ("auto", "float32")
        ]
        assert caplog.text.count("float32") == 1
        fits[0].save(tmp_path / "saved")
        loaded = text.load(tmp_path / "saved")
        assert {parameter.dtype for parameter in loaded._network.parameters()} == {torch.float32}
        expected = fits[1].predict_proba(["gold and oil"])
        np.testing.assert_array_equal(fits[0].predict_proba(["gold and oil"]), expected)
        np.testing.assert_array_equal(loaded.predict_proba(["gold and oil"]), expected)

    def test_a_product_that_works(self, monkeypatch, caplog):
        from surelabel.text import training

        monkeypatch.setattr(training, "_PRODUCTS", "pass")
        assert training.has_bfloat16()
        assert not caplog.records

    def test_a_limited_library_computes_in_float32(self, monkeypatch):
        from surelabel.text import training

        monkeypatch.setattr(training, "_PRODUCTS", "pass")
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
        assert not training.has_bfloat16()


def test_training_in_bfloat16(training, validation, tiny_encoder):
    settings = {"model": tiny_encoder, "epochs": 1, "encoder_learning_rate": 5e-3, "head_learning_rate": 0.05}
    fits = [
        text.make("bert", precision=precision, **settings).fit(*training, validation=validation)
        for precision in ("float32", "auto")
    ]
    one, other = (fitted.predict_proba(["gold and oil"]) for fitted in fits)
    np.testing.assert_allclose(one, other, atol=0.1)
