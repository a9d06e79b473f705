"""The addresses that Label Studio calls, as its ML backends are called."""

CONFIG = '<View><Text name="body" value="$content"/><Choices name="tags" toName="body" choice="multiple"/></View>'


def test_health_and_setup(client):
    assert client.get("/label-studio/health").json()["status"] == "UP"
    body = {"project": "1.1", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "x", "extra": None}
    assert "surelabel" in client.post("/label-studio/setup", json=body).json()["model_version"]


def test_one_prediction_per_plausible_label_set(client):
    tasks = [{"id": 1, "data": {"content": "corn wheat maybe"}}, {"id": 2, "data": {"content": "corn"}}]
    body = {"tasks": tasks, "project": "1.1", "label_config": CONFIG, "params": {"login": None}}
    results = client.post("/label-studio/predict", json=body).json()["results"]
    assert len(results) == 2
    assert len(results[0]) > 1
    scores = [prediction["score"] for prediction in results[0]]
    assert scores == sorted(scores, reverse=True)
    region = results[1][0]["result"][0]
    assert (region["from_name"], region["to_name"], region["type"]) == ("tags", "body", "choices")
    asked = {"text": "corn", "labels": region["value"]["choices"]}
    assert client.post("/v1/p-value", json=asked).json()["p_value"] == results[1][0]["score"]


def test_what_cannot_be_predicted(client):
    answer = client.post("/label-studio/predict", json={"tasks": [{"data": {"image": "x.png"}}]})
    assert answer.status_code == 422
    assert "'text'" in answer.json()["error"]["message"]
    assert client.post("/label-studio/predict", json={"tasks": []}).json()["results"] == []
    assert client.post("/label-studio/predict", json=[]).status_code == 422
