"""A stand-in for `annif run`: a project that learns from tickets.csv, and answers as Annif 1.4.3 was seen to answer."""

import argparse
import csv
import http.server
import json
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

with Path("tickets.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
BINARY, WORDS, MODEL = MultiLabelBinarizer(), TfidfVectorizer(), OneVsRestClassifier(LogisticRegression(C=10))
MODEL.fit(
    WORDS.fit_transform([row["body"] for row in ROWS]),
    BINARY.fit_transform([row["tags"].split(";") if row["tags"] else [] for row in ROWS]),
)


def results(scores, limit):
    best = sorted(zip(scores.tolist(), BINARY.classes_, strict=True), reverse=True)[:limit]
    return [
        {"uri": f"http://example.org/{name}", "label": name, "notation": None, "score": score}
        for score, name in best
        if score > 0
    ]


class Annif(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        project = {"project_id": "books-en", "name": "Books", "is_trained": True, "modification_time": None}
        self.answer(project if self.path == "/v1/projects/books-en" else None)

    def do_POST(self):
        documents = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["documents"]
        assert len(documents) <= 32
        scores = MODEL.predict_proba(WORDS.transform([one["text"] for one in documents]))
        self.answer(
            [
                {"results": results(row, 10), "document_id": one["document_id"]}
                for one, row in zip(documents, scores, strict=True)
            ]
        )

    def answer(self, content):
        problem = {"title": "Not Found", "detail": "Project not found", "status": 404}
        body = json.dumps(problem if content is None else content).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "application/problem+json" if content is None else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["run"])
parser.add_argument("--port", type=int)
http.server.ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Annif).serve_forever()
