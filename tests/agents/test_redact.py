import pytest

from impact_twin.agents.redact import MARK, clean_url, error_line, redact, redact_json

KEY = "sk-proj-abcdEFGH12345678ijkl"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        "sent with Authorization: Bearer abcdef0123456789",
        "header 'x-api-key': 'zzzzyyyyxxxx1111'",
        '{"api_key": "zzzzyyyyxxxx1111"}',
        "OPENAI_API_KEY=zzzzyyyyxxxx1111",
        "https://user:zzzzyyyyxxxx1111@proxy.example/v1",
        "https://host.example/v1?api_key=zzzzyyyyxxxx1111&x=1",
        "https://host.example/v1?x=1&access_token=zzzzyyyyxxxx1111",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "AKIAABCDEFGHIJKLMNOP",
        "AIzaSyA1234567890abcdefghijklmnopq",
        "hf_abcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----",
        "password: hunter2hunter2",
    ],
)
def test_secrets_go(text):
    cleaned = redact(text)
    assert MARK in cleaned
    for secret in (KEY, "abcdef0123456789", "zzzzyyyyxxxx1111", "hunter2hunter2", "MIIEvQ"):
        assert secret not in cleaned
    assert not any(part in cleaned for part in ("ghp_", "AKIAABC", "AIzaSy", "hf_abc", "eyJhbGci"))


@pytest.mark.parametrize(
    "text",
    [
        "Recommended: V-101 Frostline Scientific, with 81.25 points.",
        "Account ZX12 3456 7890 1234 5678 of V-302",
        "This model's maximum context length is 8192 tokens",
        "max_tokens: 400",
        "The key question is which token economy wins; the secret is patience.",
        "https://host.example/v1?page=2",
        "approval AP-5207 of requisition RQ-502",
        "mail to office@calvera-cold.example",
    ],
)
def test_ordinary_text_stays(text):
    assert redact(text) == text


def test_values_of_secret_variables_go_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "correct horse battery")
    monkeypatch.setenv("DB_PASSWORD", "short")
    monkeypatch.setenv("MAX_TOKENS", "something long")
    assert redact("it said: correct horse battery!") == f"it said: {MARK}!"
    assert redact("short something long") == "short something long"


def test_json_values_are_cleaned_deeply():
    data = {
        "api_key": "x",
        "nested": [{"Authorization": ["a"]}, {"url": "http://u:ppppppp@h/"}],
        "max_tokens": 5,
        "password": None,
    }
    assert redact_json(data) == {
        "api_key": MARK,
        "nested": [{"Authorization": MARK}, {"url": f"http://{MARK}@h/"}],
        "max_tokens": 5,
        "password": None,
    }


@pytest.mark.parametrize(
    ("url", "cleaned"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://me:pw@host.example:9/v1?key=1#frag", "https://host.example:9/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://host:notaport/v1", MARK),
        (f"https://host.example/{KEY}/v1", f"https://host.example/{MARK}/v1"),
    ],
)
def test_urls_keep_only_the_endpoint(url, cleaned):
    assert clean_url(url) == cleaned


def test_an_error_line_is_one_short_clean_line():
    class RudeError(Exception):
        def __str__(self):
            raise RuntimeError

    assert error_line(ValueError(f"bad\n\x1b[31m{KEY}")) == rf"ValueError: bad \x1b[31m{MARK}"
    assert error_line(RudeError()) == "RudeError: its text can't be made"
    assert len(error_line(ValueError("x" * 10_000))) == 400
    assert error_line(ValueError("a" * 395 + " " + KEY)).count("sk-") == 0
    assert error_line(ValueError()) == "ValueError"
