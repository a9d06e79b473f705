"""Call the service from Python and with curl: start it on the loopback address, ask, end it.

python examples/07_call_the_service.py                          # trains a small model first
python examples/07_call_the_service.py --model models/tickets   # a folder that `surelabel train` made
"""

import argparse
import json
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from surelabel import corpora, train

parser = argparse.ArgumentParser()
parser.add_argument("--model", help="folder of a model")
model = parser.parse_args().model
with tempfile.TemporaryDirectory() as work:
    if model is None:
        model = str(Path(work) / "model")
        corpus = corpora.load("synthetic", n_texts=1000, n_labels=8)
        train(corpus, model, measure="LogLoss", compare=False)

    # Start the service as you would in a shell, on a port that is free now.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "surelabel", "serve", model, "--port", str(port)]
    service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    try:
        # It listens at once, and is ready once it has answered its first text.
        for _ in range(600):
            try:
                if client.get("/readyz").is_success:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)

        # From Python: several texts at once, at a significance that the client chooses.
        texts = ["The exports and the tariff on goods.", "A ballot, and the voters of the campaign."]
        answered = client.post("/v1/predict", json={"texts": texts, "significance": "0.1", "top": 2}).raise_for_status()
        for answer in answered.json()["answers"]:
            # Sizes are decimal strings: they can exceed what a JSON number can represent.
            size = answer["size"]["readable"]
            print(
                f"best guess: {', '.join(answer['labels'])}; certain: {', '.join(answer['certain'])}; {size} plausible"
            )

        # The answer to a wrong request says what to do.
        refused = client.post("/v1/predict", json={"texts": texts, "significance": 2})
        print(refused.status_code, refused.json()["error"]["what_to_do"])

        # The same with curl.
        body = json.dumps({"text": "Crude by the barrel.", "significance": 0.05, "describe": True})
        curl = ["curl", "-s", f"{client.base_url}/v1/predict", "-H", "Content-Type: application/json", "-d", body]
        print(shlex.join(curl))
        if shutil.which("curl"):
            printed = subprocess.run(curl, check=True, capture_output=True, text=True).stdout
            print(json.loads(printed)["answers"][0]["description"])
    finally:
        client.close()
        service.terminate()
        service.wait(30)
