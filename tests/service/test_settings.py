import pytest

from surelabel.exceptions import InvalidInputError
from surelabel.service import ServiceSettings
from surelabel.service.settings import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    assert ServiceSettings(host=host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", ""])
def test_other_hosts_need_a_token_or_insistence(host):
    assert not is_loopback(host)
    with pytest.raises(InvalidInputError, match="needs a token"):
        ServiceSettings(host=host)
    assert ServiceSettings(host=host, token="secret").hosts == ("*",)
    assert ServiceSettings(host=host, allow_unprotected=True).token is None


def test_token_is_not_shown():
    assert "hush-hush" not in repr(ServiceSettings(token="hush-hush"))


@pytest.mark.parametrize("token", ["", " ", "schlüssel", "a\nb"])
def test_tokens_that_no_header_can_carry(token):
    with pytest.raises(InvalidInputError, match="token"):
        ServiceSettings(token=token)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_texts", 0),
        ("max_body_bytes", 10),
        ("max_top", True),
        ("max_batch_texts", 1.5),
        ("max_wait", -1),
        ("timeout", float("inf")),
        ("timeout", float("nan")),
        ("port", 70_000),
        ("watch", "yes"),
    ],
)
def test_what_cannot_be_set(name, value):
    with pytest.raises(InvalidInputError, match=name):
        ServiceSettings(**{name: value})


def test_hosts_that_requests_may_be_addressed_to():
    assert "localhost" in ServiceSettings().hosts
    assert ServiceSettings(allowed_hosts=("Labels.example.org",)).hosts == ("labels.example.org",)
