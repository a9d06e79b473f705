"""Who may ask: token, host, site, content type; and what responses forbid."""

import base64

import pytest

from service.conftest import asking, refused
from service.fakes import FakeBundle
from surelabel.exceptions import InvalidInputError
from surelabel.service import ServiceSettings, create_app

pytestmark = pytest.mark.anyio
TOKEN = "a token of some length"
BODY = {"text": "corn"}


@pytest.fixture(scope="module")
async def guarded(bundle):
    async with asking(create_app(bundle, ServiceSettings(token=TOKEN))) as client:
        yield client


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": TOKEN},
        {"Authorization": "Basic !!"},
        {"Authorization": "Basic /w=="},
        basic(TOKEN, ""),
    ],
)
async def test_without_the_token_nothing_is_answered(guarded, headers):
    response = await guarded.post("/v1/predict", json=BODY, headers=headers)
    refused(response, 401)
    assert response.headers["www-authenticate"].startswith("Bearer")
    page = await guarded.get("/", headers=headers)
    refused(page, 401)
    assert page.headers["www-authenticate"].startswith("Basic")
    assert "corn" not in response.text + page.text


async def test_a_token_or_a_password_lets_in(guarded):
    for headers in ({"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer  {TOKEN}"}, basic("ann", TOKEN)):
        for path in ("/", "/v1/model", "/metrics"):
            assert (await guarded.get(path, headers=headers)).status_code == 200
        assert (await guarded.post("/v1/predict", json=BODY, headers=headers)).status_code == 200


async def test_what_is_open_gives_no_label_names_away(guarded):
    for path in ("/healthz", "/readyz", "/openapi.json", "/static/page.js", "/static/review.js"):
        response = await guarded.get(path)
        assert response.status_code == 200
        for name in ("wheat", "Grünkohl", "Newswire"):
            assert name not in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8001"},
    ],
)
async def test_posts_of_other_sites_are_refused(client, headers):
    refused(await client.post("/v1/predict", json=BODY, headers=headers), 403)


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, {"Origin": "http://127.0.0.1"}],
)
async def test_posts_of_the_own_page_are_answered(client, headers):
    assert (await client.post("/v1/predict", json=BODY, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; b=x", ""]
)
async def test_what_forms_of_other_sites_can_send_is_no_json(client, media_type):
    response = await client.post("/v1/predict", content=b'{"text": "a"}', headers={"Content-Type": media_type})
    refused(response, 422)


async def test_other_spellings_of_json_are_answered(client):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await client.post("/v1/predict", content=b'{"text": "a"}', headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("settings", "allowed", "other"),
    [
        (
            ServiceSettings(),
            ["127.0.0.1:8000", "localhost", "[::1]:8000", "LOCALHOST:1"],
            ["evil.example", "127.0.0.1.evil"],
        ),
        (ServiceSettings(host="::1"), ["[::1]", "localhost:8000"], ["[::2]", "evil.example:8000"]),
        (ServiceSettings(allowed_hosts=("labels.example",)), ["labels.example"], ["localhost", ""]),
        (ServiceSettings(host="0.0.0.0", token=TOKEN), ["anything.example"], []),
    ],
)
async def test_only_own_host_names_are_answered(settings, allowed, other):
    async with asking(create_app(FakeBundle(), settings)) as client:
        for host in allowed:
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 200
        for host in other:
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 400


async def test_every_response_has_safe_headers(client):
    for path in ("/", "/v1/model", "/nothing", "/static/page.js", "/metrics"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in (await client.get("/")).headers["content-security-policy"]
    assert (await client.get("/v1/model")).headers["cache-control"] == "no-store"


async def test_static_files_are_revalidated(client):
    first = await client.get("/static/page.js")
    assert first.headers["content-type"].startswith("text/javascript")
    assert first.headers["cache-control"] == "no-cache"
    assert (await client.get("/static/page.js", headers={"If-None-Match": first.headers["etag"]})).status_code == 304


def test_a_service_for_other_machines_needs_a_token():
    with pytest.raises(InvalidInputError, match="token"):
        ServiceSettings(host="0.0.0.0")
    assert ServiceSettings(host="0.0.0.0", token=TOKEN).hosts == ["*"]
    assert TOKEN not in repr(ServiceSettings(token=TOKEN))


@pytest.mark.parametrize(
    "values",
    [{"port": -1}, {"port": 2**16}, {"port": "80"}, {"workers": 0}, {"workers": True}, {"max_body_bytes": 10}]
    + [{"token": token} for token in ("", " a", "a\n", "tökén")],
)
def test_settings_are_checked(values):
    with pytest.raises(InvalidInputError, match=next(iter(values))):
        ServiceSettings(**values)
