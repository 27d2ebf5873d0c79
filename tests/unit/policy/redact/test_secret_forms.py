"""Redaction, form by form: how files, shells and programs write a secret down."""

import base64
import random
import re
import string

import pytest

from fakes import HEX, drawn, password
from rekindle.policy.redact.find_secrets import (
    find_secrets,
    redact_text,
)

RNG = random.Random(11)


@pytest.fixture(autouse=True)
def _drawn_for_this_test(request):
    """Make the random values depend on the test alone, not on earlier tests of the worker."""
    RNG.seed(request.node.name)


BASE32 = string.ascii_uppercase + "234567"
DIGITS = "0123456789"


def letters(size, alphabet=string.ascii_letters):
    """Drawn letters without a digit, of more than one kind."""
    return "".join(RNG.choice(alphabet) for _ in range(size))


def mixed(size):
    return letters(size - 4) + "qXvB"


def b64(size):
    return base64.b64encode(RNG.randbytes(size)).decode()


FORMS = {
    "yaml block": "db_password: |\n  {}\nother: 1",
    "yaml folded": "  api_token: >-\n    {}\n  other: 1",
    "yaml block, two lines": "secret_key: |\n  {}\n  {}\nother: 1",
    "terraform heredoc": "password = <<EOT\n{}\nEOT",
    "terraform indented heredoc": "client_secret = <<-EOT\n    {}\n  EOT",
    "shell heredoc": "kubectl create secret generic token --from-file=x <<EOF\n{}\nEOF",
    "shell heredoc into a file": "cat > /etc/app/api_token <<'EOF'\n{}\nEOF",
    "triple quotes": 'PASSWORD = """{}"""',
    "triple quotes, next line": 'API_SECRET = """\n{}\n"""',
    "toml triple quotes": "client_secret = '''\n{}'''",
    "plist": "<key>APIToken</key>\n\t<string>{}</string>",
    "plist in one line": "<key>clientSecret</key><string>{}</string>",
    "xml attribute": '<user name="ops" password="{}"/>',
    "xml add": '<add key="ApiSecret" value="{}" />',
    "xml property": '<property name="db.password" value="{}"/>',
    "xml element": "<clientSecret>{}</clientSecret>",
    "xml element, attributes": '<password type="plain">{}</password>',
    "xml entry": '<entry key="password">{}</entry>',
    "xml param": '<param name="api-token">{}</param>',
    "php define": "define('DB_PASSWORD', '{}');",
    "php define, double": 'define( "AUTH_KEY",  "{}" );',
    "php array": "'secret' => '{}',",
    "fish": "set -gx X_TOKEN {}",
    "fish, universal": "set -Ux GITEA_TOKEN '{}'",
    "csh": "setenv API_TOKEN {}",
    "windows": "setx API_TOKEN {}",
    "cmd": 'set "API_TOKEN={}"',
    "add-mask": "::add-mask::{}",
    "set-output": "::set-output name=token::{}",
    "vso": "##vso[task.setvariable variable=apiToken;issecret=true]{}",
    "mysql": "mysql -h db -u root -p{} app",
    "sqlcmd": "sqlcmd -S db -U sa -P {} -Q 'select 1'",
    "sshpass": "sshpass -p {} ssh ops@example.com",
    "redis": "redis-cli -h cache -a {} ping",
    "docker login": "docker login -u ops -p {} registry.example.com",
    "mosquitto": "mosquitto_pub -h broker -u dev -P {} -t a",
    "kinit": "echo {} | kinit ops@EXAMPLE.COM",
    "stdin": "echo '{}' | docker login -u ops --password-stdin",
    "chpasswd": "echo 'ops:{}' | chpasswd",
    "vault": "vault kv put secret/app password={}",
    "gh secret": "gh secret set DEPLOY_TOKEN --body {}",
    "heroku": "heroku config:set SECRET_KEY_BASE={}",
    "kubectl": "kubectl create secret generic db --from-literal=password={}",
    "npmrc": "//registry.example.com/:_authToken={}",
    "pip": "https://ops:{}@packages.example.com/simple",
    "maven": "<server><id>x</id><password>{}</password></server>",
    "gradle": "signing.password={}",
    "ini": "[db]\npass = {}",
    "properties": "spring.datasource.password={}",
    "hcl": 'variable "db_password" {{ default = "{}" }}',
    "dockerfile": "ENV API_TOKEN {}",
    "systemd": 'Environment="API_TOKEN={}"',
    "java": 'System.setProperty("db.password", "{}");',
    "go": 'os.Setenv("API_TOKEN", "{}")',
    "rust": 'const API_TOKEN: &str = "{}";',
    "ruby": 'ENV["API_TOKEN"] ||= "{}"',
    "c": '#define API_TOKEN "{}"',
    "lua": 'local api_token = "{}"',
    "swift": 'let apiToken: String = "{}"',
    "kotlin": 'val apiToken: String = "{}"',
    "elixir": 'config :app, secret_key_base: "{}"',
    "clojure": ':api-token "{}"',
    "lisp": '(setq api-token "{}")',
    "powershell": '$Password = ConvertTo-SecureString "{}" -AsPlainText -Force',
    "sql": "ALTER USER ops WITH PASSWORD '{}';",
    "sql create": "CREATE ROLE ops LOGIN ENCRYPTED PASSWORD '{}'",
    "graphql": 'mutation {{ login(user: "a", password: "{}") }}',
    "table": "| API_TOKEN | {} |",
    "markdown": "**Password:** `{}`",
    "env dump": 'declare -x API_TOKEN="{}"',
    "header": "X-Api-Key: {}",
    "header, list": '["X-Auth-Token", "{}"]',
    "python tuple": '("api_token", "{}")',
    "wifi": "wpa_passphrase={}",
    "form": "grant_type=password&username=ops&password={}&scope=x",
    "url-encoded": "redirect?next=%2Fcb%3Ftoken%3D{}%26x%3D1",
    "log": "level=info msg=login token={} user=ops",
    "two lines": "name: API_TOKEN\nvalue: {}",
}
PASSWORD = re.compile("(?i)pass|secret|mask|kinit|-[pPa] |-p{|pwd|::")
TOKEN_NAME = re.compile("(?i)[a-z_-]*(token|api-key)")
MAKERS = {
    "drawn": lambda: drawn(RNG, 32),
    "hex": lambda: drawn(RNG, 32, HEX),
    "password": lambda: password(RNG),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(form, maker):
    """Every form is tried with a random secret, a hexadecimal one and a made-up password."""
    template = FORMS[form]
    if maker == "password" and not PASSWORD.search(template):
        template = TOKEN_NAME.sub("DB_PASSWORD", template)
    made = [MAKERS[maker]() for _ in range(template.count("{}"))]
    text = template.format(*made)
    cleaned = redact_text(text)
    assert not [one for one in made if one in cleaned or one[-6:] in cleaned], cleaned
    assert redact_text(cleaned) == cleaned


NAMES = {
    "env": "PASSWORD={}",
    "api key": "STRIPE_API_KEY={}",
    "token": "export DEPLOY_TOKEN={}",
    "secret": "client_secret: {}",
    "json": '"apiToken": "{}"',
    "bearer": "Authorization: Bearer {}",
    "yaml": "api_key: '{}'",
    "xml": "<password>{}</password>",
    "flag": "deploy --api-key {} --now",
}
PLAIN = {
    "letters": lambda: mixed(16),
    "twelve letters": lambda: mixed(12),
    "capitals": lambda: letters(20, string.ascii_uppercase),
    "small letters": lambda: letters(24, string.ascii_lowercase),
    "base32": lambda: letters(14, BASE32) + "A7",
    "short hex": lambda: drawn(RNG, 16, HEX),
    "capital hex": lambda: drawn(RNG, 16, HEX).upper(),
    "base64": lambda: b64(33),
    "uuid": lambda: "-".join(drawn(RNG, size, HEX) for size in (8, 4, 4, 4, 12)),
}


TRIES = 20
MAY_LOOK_LIKE_WORDS = 0.2
"""Random letters sometimes look like a word."""


@pytest.mark.parametrize("maker", PLAIN)
@pytest.mark.parametrize("name", NAMES)
def test_a_strong_name_asks_little_of_its_value(name, maker):
    """Letters without a digit, capitals, base32 and short hex go where the name says secret."""
    made = [PLAIN[maker]() for _ in range(TRIES)]
    missed = [one for one in made if one in redact_text(NAMES[name].format(one))]
    assert len(missed) <= TRIES * MAY_LOOK_LIKE_WORDS, missed


def pem_lines(count):
    return [b64(48) for _ in range(count)]


TOKENS = {
    "glued": lambda: "12gh" + "p_" + drawn(RNG, 36),
    "glued to letters": lambda: "xgh" + "p_" + drawn(RNG, 36),
    "behind an encoded sign": lambda: "%3Dgh" + "p_" + drawn(RNG, 36),
    "vault": lambda: "hv" + "s." + drawn(RNG, 24),
    "old vault": lambda: "root token: s." + drawn(RNG, 24),
    "unseal": lambda: "Unseal Key 1: " + b64(33),
    "initial root": lambda: "Initial Root Token: hv" + "s." + drawn(RNG, 24),
    "consul": lambda: '"encrypt": "' + b64(32) + '"',
    "consul keygen": lambda: 'encrypt = "' + b64(32) + '"',
    "age": lambda: "AGE-" + "SECRET-KEY-1" + letters(57, BASE32) + "Q7",
    "tor": lambda: "ED25519-V3:" + b64(64),
    "minisign": lambda: "untrusted comment: minisign encrypted secret key\n" + b64(158),
    "signify": lambda: "untrusted comment: signify secret key\n" + b64(104),
    "privkey": lambda: "privkey " + drawn(RNG, 64, HEX),
    "private key hex": lambda: "private key: 0x" + drawn(RNG, 64, HEX),
    "keytab": lambda: "KEYTAB_B64=" + b64(60),
    "keystore": lambda: "KEYSTORE_BASE64=" + b64(90),
    "project key": lambda: "project key " + drawn(RNG, 32, HEX),
    "ably": lambda: drawn(RNG, 6) + "." + drawn(RNG, 6) + ":" + drawn(RNG, 43),
    "confluent": lambda: "sasl.password=cflt" + drawn(RNG, 60),
    "klaviyo": lambda: "klaviyo pk_" + drawn(RNG, 34, HEX),
    "intercom": lambda: "INTERCOM_ACCESS_TOKEN=dG9rO" + b64(36),
    "wireguard": lambda: "PrivateKey = " + b64(32),
    "fernet": lambda: "fernet_key = " + base64.urlsafe_b64encode(RNG.randbytes(32)).decode(),
    "totp": lambda: "otpauth://totp/x:ops?secret=" + letters(32, BASE32) + "&issuer=x",
    "datadog": lambda: "DD_API_KEY=" + drawn(RNG, 32, HEX),
    "vapid": lambda: "VAPID_PRIVATE_KEY=" + base64.urlsafe_b64encode(RNG.randbytes(32)).decode(),
    "laravel": lambda: "APP_KEY=base64:" + b64(32),
    "rails": lambda: "secret_key_base: " + drawn(RNG, 128, HEX),
    "htdigest": lambda: "ops:realm:" + drawn(RNG, 32, HEX),
    "ntlm": lambda: "Administrator:500:" + drawn(RNG, 32, HEX) + ":" + drawn(RNG, 32, HEX) + ":::",
    "join token": lambda: "kubeadm join 10.0.0.1:6443 --token a1b2c3." + drawn(RNG, 16, HEX),
    "swarm": lambda: "SWM" + "TKN-1-" + drawn(RNG, 50, string.ascii_lowercase + DIGITS),
    "bip32": lambda: "xp" + "rv9s21ZrQH143K" + drawn(RNG, 97),
}


@pytest.mark.parametrize("token", TOKENS)
def test_a_well_known_format_is_found(token):
    """For the published formats of vendors and tools, the last characters are removed."""
    for _ in range(4):
        text = TOKENS[token]()
        end = re.search(r"[\w+/-]{10}(?=[=:\"]*(?:&issuer=x)?$)", text)
        assert end[0] not in redact_text(f"a\n{text}\nb"), text


def test_the_body_of_a_key_without_its_frame_is_found():
    """Lines of 64 characters that begin as a private key does, with neither BEGIN nor END."""
    body = ["MII" + "EvQIBADANBgkqhkiG9w0BAQEFAASC" + b64(48)[:32], *pem_lines(6), b64(20)]
    cleaned = redact_text("\n".join(["$ sed -n 2,9p server.key", *body, "$ ls"]))
    assert not [line for line in body if line in cleaned]


@pytest.mark.parametrize(
    "line",
    [
        "compass: NNE-22.5",
        "bypass=cacheKey2Version3",
        "password: !vault |",
        "password: |",
        "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-Ab3xYz",
        "Cache restored from key: Linux-node-" + "9f86d081884c7d65" * 4,
        "trusted-public-keys = cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=",
        "Authorization: see docs/auth.md#bearer-tokens-v2",
        "pk_" + "live_51H8xKjLmNoPqRsTuVwXyZ0123456789",
        "password: correct",
        "secret: kubernetes",
        "token: identifier",
        "api_key: REQUIRED",
        "PASSWORD=CHANGE_ME_BEFORE_DEPLOYMENT",
        "token = parser.nextToken",
        "password=postgres",
        "secretName: my-registry-credentials",
        "const tokenType = TokenTypeIdentifier",
        "password: userPasswordFromEnvironment",
        "API_KEY=PRODUCTION_API_KEY_NAME",
        "token: CancellationTokenSource",
        "secret = getSecretFromVault",
        "the key: InternationalizationService",
        "Bearer authentication is required for the administration interface",
        "token: internationalization",
    ],
)
def test_look_alikes_stay(line):
    """Public keys, names of secrets, words and code beside a telling name are left alone."""
    assert [line[one.start : one.end] for one in find_secrets(line)] == []
