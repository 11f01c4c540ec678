"""No secret reaches a file, whatever form it travels in; everything else does."""

import base64
import json
import re
import shlex
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.redaction import Redactor, secrets_of_environment
from ci_gate.redaction.runs import Gated, Look, longest_run, runs_of
from ci_gate.redaction.shapes import RULES

_SECRET = 'pa55"wörd/+\\x=&'


_SHAPES = [
    "Authorization: Bearer abcdef.123456-xyz",
    "authorization=Basic dXNlcjpwYXNzd29yZA==",
    '{"api_key": "0123456789abcdef"}',
    r"{\"password\": \"hunter2hunter2\"}",
    "Set-Cookie: session=0123456789; Path=/",
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "AKIAABCDEFGHIJKLMNOP",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "xoxb-1234567890-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "postgres://admin:s3cr3t@db.example/orders",
]


@pytest.mark.parametrize("text", _SHAPES)
def test_text_in_the_shape_of_a_credential_is_taken_out(text):
    """Without knowing the secret; the kind of what was there is kept."""
    secret = max(text.replace('"', " ").replace("\\", " ").split(), key=len)

    redacted = Redactor().text(text)

    assert "[REDACTED:" in redacted
    assert secret not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "refund order 4812 for user@example.com",
        "the basic plan costs 12 USD",
        "password reset was sent",
        "https://example.com/a?b=c",
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "task-4812 sk- pk_x cookie",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_ordinary_text_is_left_alone(text):
    """A garbled trace helps nobody."""
    assert Redactor().text(text) == text


@given(st.text('abc é"\\\n/', max_size=9), st.text("xyz ?&\n", max_size=9))
def test_a_known_secret_is_found_in_every_form_and_at_every_place(before, after):
    """Plain, JSON once and twice, percent-encoded, base64 and base64url of a longer text."""
    text = before + _SECRET + after
    raw = text.encode()
    forms = [
        text,
        json.dumps(text),
        json.dumps(json.dumps(text)),
        json.dumps(text, ensure_ascii=False),
        quote(text),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
    ]
    redactor = Redactor([_SECRET])

    for form in forms[:5]:
        assert redactor.text(form) != form
        assert "wörd" not in redactor.text(form)
    for form in forms[5:]:
        assert _SECRET.encode() not in _decoded(redactor.text(form))


def _decoded(text):
    kept = "".join(char for char in text if char.isalnum() or char in "+/-_")
    kept += "A" * (-len(kept) % 4)
    return base64.b64decode(kept.replace("-", "+").replace("_", "/"))


def test_values_under_names_of_secrets_are_taken_out():
    """As a mapping, in lists, and as a header split into name and value."""
    value = {
        "headers": [["X-Api-Key", "k-123"], ["Accept", "text/html"]],
        "Client-Secret": ["one", "two"],
        "tokens": 12,
        "password": None,
        "nested": {"refresh_token": "abc"},
    }

    assert Redactor().value(value) == {
        "headers": [["X-Api-Key", "[REDACTED:secret]"], ["Accept", "text/html"]],
        "Client-Secret": "[REDACTED:secret]",
        "tokens": 12,
        "password": None,
        "nested": {"refresh_token": "[REDACTED:secret]"},
    }


def test_what_was_found_under_a_name_is_taken_out_wherever_it_turns_up():
    """Also in the same value before its name, and in later ones."""
    redactor = Redactor()

    first = redactor.value({"echo": "got zebra-4711-token", "access_token": "zebra-4711-token"})
    later = redactor.value({"query": "use zebra-4711-token now"})

    assert first["echo"] == "got [REDACTED:secret]"
    assert later == {"query": "use [REDACTED:secret] now"}


def test_the_token_of_a_bearer_header_is_known_without_its_scheme():
    """The header says ``Bearer x``; elsewhere there is x alone."""
    redactor = Redactor()
    redactor.value({"Authorization": "Bearer zebra-4711-token"})

    assert redactor.text("zebra-4711-token") == "[REDACTED:secret]"


def test_redacting_twice_changes_nothing():
    """A replay redacts what was redacted, and its digests still agree."""
    value = {"api_key": "0123456789", "note": "Authorization: Bearer abcdefgh12345"}
    once = Redactor().value(value)

    assert Redactor().value(once) == once


def test_configured_patterns_are_taken_out():
    """What a team calls secret is secret."""
    assert Redactor(patterns=[r"\bCUST-\d+"]).text("for CUST-12345") == (
        "for [REDACTED:configured]"
    )


def test_secrets_of_the_environment_are_those_whose_names_say_so():
    """Paths, numbers and short words under such names are no secrets."""
    environment = {
        "OPENAI_API_KEY": "abcdefgh1234",
        "DB_PASSWORD": "correct horse battery",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "KEY_COUNT": "1234567890",
        "TOKEN": "short",
        "HOME": "/home/somebody",
        "KEYBOARD": "something-long",
    }

    assert secrets_of_environment(environment) == ("correct horse battery", "abcdefgh1234")


@pytest.mark.slow
def test_hostile_text_is_redacted_in_time():
    """Nothing backtracks: a megabyte of almost-secrets takes well under a second a pattern."""
    redactor = Redactor([_SECRET])

    for piece in ("Bearer ", "eyJ", "sk-a-", "password:", "://a:", "-----BEGIN PRIVATE KEY-----"):
        redactor.text(piece * 20_000)


def test_deep_values_do_not_exhaust_the_stack():
    """What lies deeper than any tool's answer is left as it is."""
    value = {"password": "0123456789"}
    for _ in range(400):
        value = [value]

    assert Redactor().value(value) is not None


@pytest.mark.parametrize("is_key", [True, False])
@pytest.mark.parametrize("text", _SHAPES)
def test_what_the_quick_look_passes_over_holds_no_secret(text, is_key):
    """The short way never hides what the long way finds."""
    value = {text: 1} if is_key else {"note": [text]}

    assert Redactor().value(value) != value


def test_what_one_trial_learns_no_other_is_told():
    """A fresh redactor knows the secrets it was made with and nothing that was found since."""
    base = Redactor([_SECRET])
    one, other = base.fresh(), base.fresh()
    one.value({"password": "zebra-4711-token"})

    assert one.text("zebra-4711-token") == "[REDACTED:secret]"
    assert other.text("zebra-4711-token") == "zebra-4711-token"
    assert other.text(_SECRET) == "[REDACTED:secret]"


@pytest.mark.parametrize(
    "value",
    [
        ["Authorization", "k-12345678"],
        ["Accept", "text/html", "X-Api-Key", "k-12345678"],
        {"name": "Cookie", "value": "k-12345678"},
        {"header": "Authorization", "value": ["k-12345678"]},
        {"HTTP_AUTHORIZATION": "k-12345678"},
    ],
)
def test_a_header_split_into_name_and_value_is_taken_out(value):
    """As a pair, in a flat list by turns, as an object of both, as a variable of CGI."""
    assert "k-12345678" not in repr(Redactor().value(value))


@pytest.mark.parametrize(
    "value",
    [
        ["password", "email", "name"],
        ["see the docs", "password"],
        {"name": "region", "value": "eu-west"},
        {"usage": {"input_tokens": 5, "total_tokens": 7}, "logprobs": [{"token": "Hello there"}]},
        {"keys": ["a", "b"], "key": "refund-4812"},
    ],
)
def test_names_alone_and_other_values_are_left_alone(value):
    """What is no secret stays as it is."""
    assert Redactor().value(value) == value


def test_the_beginning_of_a_secret_at_a_cut_is_taken_out():
    """Reasons are cut at a length, wherever that is."""
    redactor = Redactor(["zebra-4711-token"])

    assert redactor.reason("got zebra-4711-t... (537 characters)") == (
        "got [REDACTED:secret]... (537 characters)"
    )
    assert redactor.reason("got zebra-4711") == "got [REDACTED:secret]"
    assert redactor.reason("got zebra-4") == "got zebra-4"
    assert redactor.reason("a zebra-4711-farm") == "a zebra-4711-farm"


@pytest.mark.parametrize("text", ["OPENAI_API_KEY=0123456789", "İ password: 0123456789"])
def test_assignments_are_found_in_longer_names_and_beside_odd_letters(text):
    """As in a dump of an environment; a letter that becomes two in lower case shifts nothing."""
    assert Redactor().text(text).endswith("[REDACTED:secret]")
    assert Redactor().text(text).startswith(text[:3])


@given(st.sampled_from([*_SHAPES, "plain"]), st.text(max_size=20), st.text(max_size=20))
def test_the_quick_look_misses_nothing_that_a_text_alone_shows(shape, before, after):
    """A value loses what each of its texts would lose by itself, whatever JSON makes of them."""
    text = before + shape + after

    assert Redactor().value([{"note": text}]) == [{"note": Redactor().text(text)}]


@pytest.mark.parametrize("option", ["--password", "--token", "--api-key", "-secret", "--API_KEY"])
def test_what_follows_an_option_that_names_a_secret_is_taken_out(option):
    """Wherever it stands on a command line, and from then on anywhere."""
    redactor = Redactor()

    shown = redactor.value({"argv": ["tool", "-v", option, "hunter2hunter2", "x"]})

    assert shown == {"argv": ["tool", "-v", option, "[REDACTED:secret]", "x"]}
    assert redactor.text("said hunter2hunter2") == "said [REDACTED:secret]"


def test_an_option_without_a_value_hides_no_other_option():
    """``--password --verbose`` asks for the password."""
    argv = ["tool", "--password", "--verbose-mode", "--tokens", "1234567890"]

    assert Redactor().value(argv) == argv


@pytest.mark.parametrize(
    "shortest",
    [
        "Bearer abcdefgh",
        "basic abcdefgh",
        "-----BEGIN PRIVATE KEY-----",
        "://a:b@",
        "eyJabcdefgh.abcdefgh.abcd",
        "sk-" + "a" * 16,
        "pk_" + "a" * 16,
        "gho_" + "a" * 20,
        "github_pat_" + "a" * 20,
        "glpat-" + "a" * 20,
        "hf_" + "a" * 20,
        "xoxb-" + "a" * 10,
        "AKIA" + "A" * 16,
        "ASIA" + "A" * 16,
        "AIza" + "a" * 35,
        "cookie: abcdefgh",
        "authorization=abcdefgh",
        "passwd: abcdefgh",
    ],
)
def test_the_shortest_credential_of_every_shape_is_found(shortest):
    """Texts without long words are not looked through, so none may be missed for being short."""
    assert any(rule.without(f" {shortest} ") != f" {shortest} " for rule in RULES)
    assert "[REDACTED" in Redactor().text(f" {shortest} ")
    assert "[REDACTED" in str(Redactor().value([{"n": f" {shortest} "}]))


@pytest.mark.parametrize(
    "name", ["authorization", "credentials", "passphrase", "secret", "passwd", "id_token", "cookie"]
)
def test_the_shortest_value_under_every_kind_of_name_is_found(name):
    """A name has to be found before what stands under it is."""
    assert Redactor().value({name: "x"}) == {name: "[REDACTED:secret]"}


@given(st.text(min_size=8, max_size=12), st.text(max_size=4), st.text(max_size=4))
def test_a_known_secret_of_any_letters_is_found(secret, before, after):
    """Whatever words it is made of."""
    assert secret not in Redactor([secret]).text(before + secret + after).replace(
        "[REDACTED:secret]", ""
    )


def test_only_what_has_room_in_the_longest_word_is_looked_for():
    """Words are made of letters, digits, a few signs and everything beyond ASCII."""
    looks = [(Look(re.compile(word).search, len(word)), word) for word in (b"abcd", b"ab", b"b c")]
    gated = Gated([*looks[:2], (Look(re.compile(b"b c").search, 1), b"b c")])

    assert longest_run("ab.cé-d {}".encode()) == 5
    assert list(gated.found(b"ab cd", runs_of(b"ab cd"))) == [b"b c", b"ab"]
    assert list(gated.found(b"abcd", b"ww w")) == [b"ab"]
    assert list(gated.found(b"abcd", runs_of(b""))) == []


@pytest.mark.parametrize(
    "line",
    [
        "curl -u bob:hunter22 https://example.org",
        "curl --user 'bob:hunter22' https://example.org",
        "curl --proxy-user=bob:hunter22 https://example.org",
        '{"command": "curl -u \\"bob:hunter22\\" x"}',
    ],
)
def test_a_login_of_a_command_line_is_taken_out(line):
    """In a line that a shell reads, wherever it stands, and as arguments."""
    arguments = ["curl", *shlex.split(line)[1:3]] if line.startswith("curl ") else ["curl"]

    shown = str([Redactor().text(line), Redactor().value({"line": line, "argv": arguments})])

    assert "hunter22" not in shown
    assert "https://example.org" in shown or "command" in shown


@pytest.mark.parametrize("user", ["1000:1000", "0:0", "bob"])
def test_a_user_and_group_are_no_login(user):
    """As containers are given them."""
    line, argv = f"docker run -u {user} image", ["docker", "run", "-u", user, "image"]

    assert Redactor().text(line) == line
    assert Redactor().value({"argv": argv, "line": line}) == {"argv": argv, "line": line}
