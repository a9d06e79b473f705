"""POST /v1/outcomes: answers under an id, their true label-sets, and a level that follows."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from service_running import grouped_bundle, make_bundle, serving
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.outcomes import Outcomes
from surelabel.guarantees.streams import METHODS
from surelabel.service import ServiceSettings, create_app


@pytest.fixture
def fresh(bundle):
    with serving(bundle) as running, running.client() as client:
        yield client


def predicted(client, text, identity, **more):
    return client.post("/v1/predict", json={"text": text, "id": identity, **more})


def settled(client, *pairs):
    outcomes = [{"id": identity, "labels": labels} for identity, labels in pairs]
    return client.post("/v1/outcomes", json={"outcomes": outcomes})


def metric(client, name):
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def test_outcomes_settle_answers_late_and_out_of_order(fresh):
    for number, text in enumerate(("corn", "wheat grain", "trade")):
        assert predicted(fresh, text, f"t{number}").status_code == 200
    assert metric(fresh, "surelabel_outcomes_waiting") == 3
    said = settled(fresh, ("t2", ["trade"]), ("t0", ["topic-50", "topic-51", "topic-52"])).json()
    assert said["missed"] == [False, True]
    assert (said["n_settled"], said["n_missed"], said["n_waiting"], said["level"]) == (2, 1, 1, None)
    assert metric(fresh, "surelabel_outcomes_settled") == 2
    assert metric(fresh, "surelabel_outcomes_missed") == 1
    assert metric(fresh, "surelabel_outcomes_alarm") == 0


def test_ids_that_cannot_be_settled_are_told(fresh):
    predicted(fresh, "corn", "one")
    unknown = settled(fresh, ("one", ["corn"]), ("two", ["corn"]))
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "unknown_text"
    assert unknown.json()["error"]["field"] == "outcomes[1].id"
    assert settled(fresh, ("one", ["corn"])).json()["n_settled"] == 1  # nothing was changed before
    again = settled(fresh, ("one", ["corn"]))
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_settled")
    other = settled(fresh, ("one", ["wheat"]))
    assert (other.status_code, other.json()["error"]["code"]) == (409, "contradicting_outcome")
    assert settled(fresh, ("one", ["no such label"])).json()["error"]["field"] == "outcomes[0].labels[0]"
    assert settled(fresh, ("x", ["corn"]), ("x", ["corn"])).json()["error"]["code"] == "id_twice"
    assert settled(fresh).status_code == 422
    reused = predicted(fresh, "corn", "one")
    assert (reused.status_code, reused.json()["error"]["code"]) == (409, "already_settled")


def test_ids_go_with_texts(fresh):
    both = fresh.post("/v1/predict", json={"texts": ["corn", "wheat"], "ids": ["a", "b"]})
    assert both.status_code == 200
    assert settled(fresh, ("a", ["corn"]), ("b", ["wheat"])).json()["n_settled"] == 2
    for body in (
        {"texts": ["corn", "wheat"], "id": "c"},
        {"text": "corn", "ids": ["c", "d"]},
        {"texts": ["corn", "wheat"], "ids": ["c", "c"]},
    ):
        refused = fresh.post("/v1/predict", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "ids_do_not_fit")
    assert fresh.post("/v1/predict", json={"text": "corn", "id": ""}).status_code == 422


def test_a_level_follows_errors_and_survives_a_restart(bundle, tmp_path):
    settings = {"adapt": "aci", "adapt_significance": "0.1", "state": tmp_path / "state.npz"}
    with serving(bundle, ServiceSettings(**settings)) as running, running.client() as client:
        first = predicted(client, "corn", "t0").json()
        assert first["significance"] == "0.100000"
        assert predicted(client, "corn", "fixed", significance=0.2).json()["significance"] == "0.2"
        level = 0.1
        for number in range(5):
            if number:
                predicted(client, "corn", f"t{number}")
            said = settled(client, (f"t{number}", ["topic-50", "topic-51", "topic-52"])).json()
            assert said["level"] < level  # missed: the next sets are larger
            level = said["level"]
        assert metric(client, "surelabel_outcomes_level") == pytest.approx(level)
        assert settled(client, ("fixed", ["corn"])).json()["level"] == level  # its request named a level
    with serving(bundle, ServiceSettings(**settings)) as running, running.client() as client:
        said = predicted(client, "corn", "later").json()
        assert said["significance"] == f"{level:.6f}"
        again = settled(client, ("t0", ["topic-50", "topic-51", "topic-52"]))
        assert again.json()["error"]["code"] == "already_settled"
        assert settled(client, ("later", ["corn"])).json()["n_settled"] == 7
    assert Outcomes.load(tmp_path / "state.npz").n_settled_ == 7
    with pytest.raises(InvalidInputError, match="another way to adapt"):
        create_app(bundle, ServiceSettings(state=tmp_path / "state.npz"))
    other = make_bundle(names=tuple(f"x{k}" for k in range(90)))
    with pytest.raises(InvalidInputError, match="another model or calibration"):
        create_app(other, ServiceSettings(**settings))


@pytest.mark.parametrize("method", ["dtaci", "window", "nexcp"])
def test_every_method_answers(bundle, method):
    with serving(bundle, ServiceSettings(adapt=method)) as running, running.client() as client:
        for number in range(4):
            said = predicted(client, "corn", f"t{number}", describe=True)
            assert said.status_code == 200, said.text
            settled(client, (f"t{number}", ["corn"]))
        assert settled(client, ("t0", ["corn"])).status_code == 409


@pytest.mark.parametrize("method", METHODS)
def test_every_group_follows_its_own_errors(method, tmp_path):
    settings = ServiceSettings(adapt=method, adapt_significance="0.1", state=tmp_path / "state.npz")
    with serving(grouped_bundle(), settings) as running, running.client() as client:
        for number in range(6):
            said = predicted(client, "corn", f"m{number}", group="mail")
            assert said.status_code == 200, said.text
            assert said.json()["significance"] == "0.100000"
            predicted(client, "corn", f"c{number}", group="chat")
            settled(client, (f"m{number}", ["topic-50", "topic-51", "topic-52"]), (f"c{number}", ["corn"]))
    online = Outcomes.load(tmp_path / "state.npz").online
    assert online.error_rates_ == {"group 'mail'": 1.0, "group 'chat'": 0.0}
    if method in ("aci", "dtaci"):
        assert online.levels_["group 'mail'"] < 0.1 < online.levels_["group 'chat'"]


def test_many_clients_at_once_lose_nothing(bundle):
    with serving(bundle) as running:

        def work(number):
            with httpx.Client(base_url=running.url, timeout=60) as client:
                texts = {"texts": ["corn", "wheat"], "ids": [f"{number}-a", f"{number}-b"]}
                assert client.post("/v1/predict", json=texts).status_code == 200
                return settled(client, (f"{number}-b", ["wheat"])).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(work, range(40))) == {200}
        with running.client() as client:
            assert metric(client, "surelabel_outcomes_settled") == 40
            assert metric(client, "surelabel_outcomes_waiting") == 40
