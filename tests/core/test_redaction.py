"""No secret is shown: not by any of its names, not inside others' values, not by its value. FAULTS D5, D11."""

from __future__ import annotations

import time

import pytest

from dialeval_plugin.core.redaction import is_secret, redacted, without_secrets
from dialeval_plugin.leaderboard.result_files import evaluator_name, model_arguments

SECRETS = [
    *("api_key", "apikey", "api-key", "api_keys", "apiKey", "key", "bearer", "credentials", "passwd", "password", "pwd"),
    *("authorization", "Authorization", "auth", "access_key_id", "aws_secret_access_key", "token", "hf_token"),
    *("use_auth_token", "header", "headers", "extra_headers", "X-Api-Key", "secret", "client_secret", "clientSecret"),
    *("cookie", "OPENAI_API_KEY"),
]
OPEN = [
    *("tokenizer", "tokenizer_backend", "use_fast_tokenizer", "prefix_token_id", "think_end_token", "add_bos_token", "model"),
    *("eos_token", "max_tokens", "max_new_tokens", "tokenized_requests", "special_tokens", "base_url", "keyboard", "author"),
    *("monkey", "secretary", "stop_token_ids", "num_keys_to_keep", "temperature"),
]
VALUE = "hidden-Value-17"


@pytest.mark.parametrize("name", SECRETS)
def test_d11_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)
    config = {"model": "local-completions", "model_args": {"model": "m", name: VALUE}}
    assert evaluator_name(config) == "m"
    for asked in (f"model=m,{name}={VALUE}", {"model": "m", "client_kwargs": {"x": [{name: VALUE}]}}):
        assert VALUE not in repr(model_arguments({"model_args": asked}))
    nested = f"model=m,client_kwargs={{'{name}':'{VALUE}'}}"
    assert VALUE not in evaluator_name({"model": "local-completions", "model_args": nested})
    assert VALUE not in redacted(f"{{'{name}': '{VALUE}', 'other': 1}} and {name}={VALUE}")


@pytest.mark.parametrize("name", OPEN)
def test_d2_what_moves_a_number_is_no_secret(name: str) -> None:
    assert not is_secret(name)
    assert without_secrets({name: "value"}) == {name: "value"}


def test_where_a_token_is_looked_for_is_no_secret() -> None:
    assert without_secrets({"token": True, "use_auth_token": None, "hf_token": "x"}) == {"token": True, "use_auth_token": None}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@host:81/v1?api-key=k#part", "https://host:81/v1"),
        ("https://me:p@w@host/model", "https://host/model"),
        ("headers=<CIMultiDictProxy('Authorization': 'Bearer abc', 'Host': 'h')>", None),
        ("Authorization: Bearer abc", None),
        ("it said sk-abcdefghijklmnopqrstuvwx, no more", "it said ***, no more"),
        ("hf_ABCDEFGHIJKLMNOPQRSTUVWXYZ", "***"),
        ("a model named sk-small and hf_tiny", "a model named sk-small and hf_tiny"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("{'api_key': 'x\"abc', 'n': 1}", "{'api_key': '***', 'n': 1}"),
        ("run --api-key abcdefgh --n 1", "run --api-key *** --n 1"),
        ("['run', '--api-key', 'abcdefgh']", "['run', '--api-key', '***']"),
        ("--api-key is missing", "--api-key is missing"),
    ],
)
def test_d11_a_secret_is_known_by_its_place(text: str, shown: str | None) -> None:
    assert "abc" not in redacted(text)
    if shown is not None:
        assert redacted(text) == shown


def test_d11_a_secret_of_the_environment_is_known_by_its_value_and_one_in_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "a-value-of-mine")
    monkeypatch.setenv("SHORT_TOKEN", "m")
    config = {"model": "local-completions", "model_args": "model=m,nickname=a-value-of-mine"}
    assert evaluator_name(config) == "m (nickname=***)"
    assert evaluator_name({"model": "hf", "model_args": "pretrained=https://user:pw@host/model"}) == "https://host/model"


@pytest.mark.parametrize("piece", ["a", "a-", "a.", "key=", "'", "://", "a://", "@", "token: ", "key='", "--key "])
def test_time_is_linear(piece: str) -> None:
    start = time.perf_counter()
    redacted(piece * 50_000)
    assert time.perf_counter() - start < 3
