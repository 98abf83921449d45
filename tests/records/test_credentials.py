"""Which credentials are masked, and which ordinary texts are left as they are."""

import json
import random
import string

import pytest

from passhat.records.redaction import Redactor
from passhat.records.secrets import SHAPES, clean_text, names_secret

_random = random.Random(20261117)
ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


def drawn(alphabet, length):
    """Random characters, two digits and two letters among them."""
    core = _random.choices(alphabet, k=length - 4)
    return "".join([*core[: length // 2], "7", "a", "3", "b", *core[length // 2 :]])


def pair(before, value, after=""):
    return before + value + after, value


def whole(value):
    return value, value


# Put together here, so that no file of this repository looks as if it held a key.
CREDENTIALS = {
    "OpenAI": whole("sk-" + drawn(ALNUM, 48)),
    "OpenAI project": whole("sk-proj-" + drawn(ALNUM, 120)),
    "Anthropic": whole("sk-ant-api03-" + drawn(ALNUM, 93)),
    "OpenRouter": whole("sk-or-v1-" + drawn(HEX, 64)),
    "Google": whole("AIza" + drawn(ALNUM, 35)),
    "Google OAuth": whole("ya29." + drawn(ALNUM, 60)),
    "Google client secret": whole("GOCSPX-" + drawn(ALNUM, 28)),
    "GitHub": whole("ghp_" + drawn(ALNUM, 36)),
    "GitHub app": whole("ghs_" + drawn(ALNUM, 36)),
    "GitHub fine-grained": whole("github_pat_" + drawn(ALNUM, 82)),
    "GitLab": whole("glpat-" + drawn(ALNUM, 20)),
    "GitLab runner": whole("glrt-" + drawn(ALNUM, 20)),
    "AWS id": whole("AKIA" + drawn(UPPER, 16)[:16].upper()),
    "AWS secret in a profile": pair("aws_secret_access_key = ", drawn(ALNUM, 40)),
    "AWS secret in JSON": pair('{"SecretAccessKey": "', drawn(ALNUM + "/+", 40), '"}'),
    "AWS session token": pair("AWS_SESSION_TOKEN=", drawn(ALNUM + "/+", 200)),
    "Azure storage": pair("AccountKey=", drawn(ALNUM, 86) + "=="),
    "Azure SAS": pair("https://x.blob.core.windows.net/c?sv=2022&sig=", drawn(ALNUM, 44) + "%3D"),
    "Azure client secret": whole(drawn(ALNUM, 6)[:3] + "8Q~" + drawn(ALNUM, 34)),
    "Google refresh token": pair('"refresh_token": "', "1//0" + drawn(ALNUM, 60), '"'),
    "Slack bot": whole("xoxb-" + drawn(string.digits, 12)[:12] + "-" + drawn(ALNUM, 24)),
    "Slack app": whole("xapp-1-" + drawn(ALNUM, 40)),
    "Slack webhook": pair("https://hooks.slack.com/services/", drawn(ALNUM, 44)),
    "Discord webhook": pair("https://discord.com/api/webhooks/123456/", drawn(ALNUM, 60)),
    "Discord bot": pair("DISCORD: ", "M" + drawn(ALNUM, 23) + ".G" + "h1jK2." + drawn(ALNUM, 38)),
    "Telegram": whole("123456789:AA" + drawn(ALNUM, 33)),
    "Hugging Face": whole("hf_" + drawn(ALNUM, 34)),
    "Groq": whole("gsk_" + drawn(ALNUM, 52)),
    "xAI": whole("xai-" + drawn(ALNUM, 80)),
    "Perplexity": whole("pplx-" + drawn(ALNUM, 48)),
    "Replicate": whole("r8_" + drawn(ALNUM, 37)),
    "Fireworks": whole("fw_" + drawn(ALNUM, 24)),
    "NVIDIA": whole("nvapi-" + drawn(ALNUM, 60)),
    "Stripe": whole("sk_live_" + drawn(ALNUM, 24)),
    "SendGrid": whole("SG." + drawn(ALNUM, 22) + "." + drawn(ALNUM, 43)),
    "Twilio": whole("SK" + drawn(HEX, 32)),
    "npm": whole("npm_" + drawn(ALNUM, 36)),
    "PyPI": whole("pypi-AgE" + drawn(ALNUM, 60)),
    "JSON web token": whole(
        "eyJ" + drawn(ALNUM, 30) + ".eyJ" + drawn(ALNUM, 30) + ".x" + drawn(ALNUM, 40)
    ),
    "bearer": pair("Authorization: Bearer ", drawn(ALNUM, 30)),
    "basic": pair("Authorization: Basic ", drawn(ALNUM, 24) + "="),
    "private key": pair(
        "-----BEGIN RSA PRIVATE KEY-----\n", drawn(ALNUM, 64), "\n-----END RSA PRIVATE KEY-----"
    ),
    "address": pair("postgresql://app:", drawn(ALNUM, 20), "@db.internal/app"),
    "address without a user": pair("redis://:", drawn(ALNUM, 16), "@cache:6379/0"),
    "cookie": pair("Cookie: session=", drawn(ALNUM, 32), "; theme=dark"),
    "set-cookie": pair("Set-Cookie: sid=", drawn(ALNUM, 32), "; Path=/; HttpOnly"),
    "X-API-Key": pair("X-API-Key: ", drawn(ALNUM, 32)),
    "api-key": pair("api-key: ", drawn(HEX, 32)),
    "password=": pair("password=", "correcthorsebattery"),
    "password in JSON": pair('{"user": "ann", "password": "', "correct!horse", '"}'),
    "password in YAML": pair("db_password: ", "hunter22x"),
    "curl": pair("curl -s -u ann:", drawn(ALNUM, 12), " https://api.example.com"),
    "ODBC": pair("Driver=x;Server=db;Uid=sa;Password=", drawn(ALNUM, 12), ";"),
    ".npmrc": pair("//npm.example.org/:_authToken=", drawn(HEX, 36)),
    ".netrc": pair("machine api.example.com login ann password ", drawn(ALNUM, 12)),
    "Docker login": pair('{"auths": {"images.example.org": {"auth": "', drawn(ALNUM, 24), '"}}}'),
    "kube": pair("    client-key-data: ", drawn(ALNUM, 120)),
    "SMTP_PASS": pair("SMTP_PASS=", drawn(ALNUM, 14)),
    "Mailgun": whole("key-" + drawn(HEX, 32)[:32]),
    "Mailchimp": whole(drawn(HEX, 32)[:32] + "-us14"),
    "Datadog": pair("DD_API_KEY=", drawn(HEX, 32)),
    "Cohere": pair("COHERE_API_KEY=", drawn(ALNUM, 40)),
    "Mistral": pair('export MISTRAL_API_KEY="', drawn(ALNUM, 32), '"'),
    "Cloudflare": pair("CLOUDFLARE_API_TOKEN: ", drawn(ALNUM, 40)),
    "Figma": whole("figd_" + drawn(ALNUM, 40)),
    "Atlassian": whole("ATATT3xFfGF0" + drawn(ALNUM, 180)),
    "New Relic": whole("NRAK-" + drawn(UPPER, 27).upper()),
    "Sentry": whole("sntryu_" + drawn(HEX, 64)),
    "Grafana": whole("glsa_" + drawn(ALNUM, 32) + "_" + drawn(HEX, 8)),
    "Pinecone": whole("pcsk_" + drawn(ALNUM, 60)),
    "Cerebras": whole("csk-" + drawn(LOWER, 48)),
    "Voyage": whole("pa-" + drawn(ALNUM, 43)),
    "ElevenLabs": whole("sk_" + drawn(HEX, 48)),
    "Postman": whole("PMAK-" + drawn(HEX, 24) + "-" + drawn(HEX, 34)),
    "Vercel": pair("VERCEL_TOKEN=", drawn(ALNUM, 24)),
    "Heroku": pair("HEROKU_API_KEY=", "0a1b2c3d-1111-2222-3333-444455556666"),
    "card": whole("4111 1111 1111 1111"),
    "social security number": whole("078-05-1120"),
}
NOT_MASKED = {"card", "social security number"}
"""Personal data, and no credentials: a rule for digits would mask prices, dates and results."""

ORDINARY = (
    "sk-means-clustering-algorithm-notes and sk-learn-contrib packages",
    '<div class="sk-estimator sk-toggleable"><input class="sk-hidden--visually" id="sk-id-1">',
    "They received authorization basic training last year.",
    "Bearer authentication-is-required-here",
    "Connect with postgresql://user:password@localhost:5432/mydb as the manual says.",
    '{"usage": {"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280}}',
    "max_tokens=4096, temperature=0.2, top_p=1.0",
    "The token is the next word; each token: a piece of text.",
    "token = tokenizer.decode(output_ids[0], skip_special_tokens=True)",
    "password = getpass.getpass('Password: ')",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "client = OpenAI(api_key=settings.openai_api_key)",
    "Set the password: required, at least 12 characters.",
    "The secret: mix 2 eggs with flour.",
    "Forgot your password? Reset it under Settings > Account.",
    '{"nextPageToken": "a1b2c3d4e5f6", "items": []}',
    '{"page_token": "CAEQAA1b2c3", "sync_token": "abc123def"}',
    'pass: 12, fail: 3, skip: 1; {"PASS": "success", "FAIL": "failure"}, log_pass=state.log_pass',
    "test_login PASSED [ 50%] in 0.31s",
    "bypass=true compass=north1234",
    "The key: value pairs are sorted. primary_key=id42, foreign_key=user_id7",
    "for key, value in mapping.items(): print(key, value)",
    "Commit 3f786850e387550fdab836ed7e6dc881de23001b fixes the parser.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Order 0a1b2c3d-1111-2222-3333-444455556666 was shipped on 2026-11-17.",
    "See https://example.com/docs?page=2&sort=name#section-3",
    "git clone https://github.com/org/repo.git && cd repo",
    "ssh-keygen writes a public key to id_ed25519.pub",
    "The cookie recipe: 200 g flour, 100 g butter.",
    "Accept cookies? We use cookies: see our policy.",
    "curl -s https://api.example.com/v1/items | jq .",
    "Authorization: see the section on authentication",
    "session_id is a UUID; tokens are counted per session.",
    "mypy: error: Argument 1 has incompatible type; note: key=str",
    "pa-rallel processing, task-key-figures, us-east-1, eu-west-2",
    "def login(user, password=None, token=None): return Session(user)",
    "SELECT secret_santa, token_count FROM games WHERE pass = TRUE",
    "Use ${DB_PASSWORD} or {password} in the template; password=<your-password>",
    '{"type": "string", "name": "password", "description": "the password of the user"}',
    "Der Schlüssel: 42. Le mot de passe: à demander. パスワード: 必須",
)


def test_a_credential_is_masked_wherever_it_stands():
    redactor = Redactor({})
    for kind in CREDENTIALS.keys() - NOT_MASKED:
        text, secret = CREDENTIALS[kind]
        for said in (text, f"it said: {text} then", f"{text}\nmore"):
            assert secret not in redactor.clean(said), kind
            kept = redactor.clean_json(json.dumps({"text": said, "list": [said]}))
            assert secret not in kept, kind
            assert json.loads(kept).keys() == {"text", "list"}, kind
            assert list(redactor.leaks(kept)) == [], f"{kind}: what was cleaned is clean"
            assert redactor.clean(redactor.clean(said)) == redactor.clean(said), kind
        assert list(redactor.leaks(text)), kind


def test_most_of_the_78_kinds_are_masked():
    assert len(CREDENTIALS) == 78
    assert len(CREDENTIALS) - len(NOT_MASKED) >= 70


def test_an_ordinary_text_is_left_as_it_is():
    redactor = Redactor({})
    for text in ORDINARY:
        assert clean_text(text) == text
        assert json.loads(redactor.clean_json(json.dumps({"text": text}))) == {"text": text}


@pytest.mark.parametrize(
    ("arguments", "masked"),
    [
        ({"user": "ann", "password": "correcthorse"}, {"password"}),
        ({"apiKey": "a1b2c3d4e5", "url": "https://x.example"}, {"apiKey"}),
        ({"headers": {"Cookie": "sid=a1b2c3d4; theme=dark"}}, {"Cookie"}),
        ({"auth": "dXNlcjpwYXNzd29yZA=="}, {"auth"}),
        ({"nextPageToken": "a1b2c3d4e5", "token": "the", "passed": "yes12345"}, set()),
        ({"password": "", "secret": None, "token": 151643, "key": "abc12345"}, set()),
        ({"password": "<your password>", "token": "${TOKEN}"}, set()),
    ],
)
def test_the_key_of_an_object_tells_that_the_value_beside_it_is_secret(arguments, masked):
    kept = json.loads(Redactor({}).clean_json(json.dumps({"arguments": arguments})))["arguments"]
    flat = kept.get("headers", kept)
    assert {key for key, value in flat.items() if value == "[redacted]"} == masked


def test_every_shape_of_the_table_has_a_needle_that_its_key_holds():
    for shape in SHAPES:
        assert all(shape.needles), shape.name
        assert shape.pattern.groups <= 6, shape.name
    for text, _ in CREDENTIALS.values():
        found = [shape for shape in SHAPES if shape.pattern.search(text)]
        assert all(shape.may_be_in(text) for shape in found), (text, [s.name for s in found])


def test_a_value_that_stands_for_a_secret_is_none():
    for value in ("password", "changeme", "<your-key>", "${KEY}", "********", "xxxxxxxx"):
        assert not names_secret("password", value)


@pytest.mark.parametrize("column", ["gpt-4o", "pass@1", "is_correct_v2"])
def test_a_column_that_a_message_offers_as_the_verdict_is_no_password(column):
    for before in ("", "task=eval_id,", "'task=eval id,agent=model,", "task='a b',trial=try,"):
        advice = f"say --columns {before}pass={column}, or --columns score=COLUMN"
        assert clean_text(advice) == advice
    for secret in ("SMTP_PASS=", "user=ann,pass=", "--columns task=a --url x,pass=", "pass="):
        assert column not in clean_text(f"{secret}{column}")
    key = "ghp_0123456789abcdefghij01"
    assert key not in clean_text(f"say --columns task=a,pass={key}")
