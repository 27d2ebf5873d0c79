"""`rekindle config`: show every setting."""

import click
import msgspec

from rekindle import config as configuration
from rekindle.cli.options import (
    find_current_folder,
    json_option,
)
from rekindle.cli.output import (
    echo,
    print_bare_json,
    print_json,
    style_text,
)
from rekindle.config import Project
from rekindle.formats.validation import Duration
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import explain_settings as explanations
from rekindle.policy.settings.explain_settings import SettingExplanation
from rekindle.policy.settings.manifest_schema import describe_manifest


@click.group()
def config() -> None:
    """Show every setting with its value, origin and meaning."""


@config.command(short_help="Show the value, origin and meaning of a setting.")
@click.argument("key", required=False)
@json_option
def explain(key: str | None, as_json: bool) -> None:
    """Show the value, unit, origin and meaning of KEY, or of every setting.

    You can give just the end of a key, such as `max_relay_tokens`. The command works without a
    manifest.
    """
    place = find_current_folder()
    project = configuration.load_project(place) if configuration.find_project(place) else None
    manifest, marked = (project.manifest, project.marked) if project else (None, None)
    settings = (
        explanations.explain_setting(key, manifest, marked)
        if key
        else explanations.explain_settings(manifest, marked)
    )
    redaction = Redaction(tuple(manifest.redact.allow) if manifest else ())
    settings = [_redact_setting(setting, redaction) for setting in settings]
    if as_json:
        print_json({"settings": [_make_json(setting) for setting in settings]})
        return
    for setting in settings:
        changed = (
            ""
            if setting.value == setting.default
            else f" (default {_render_value(setting.default)})"
        )
        unit = f" {setting.unit}" if setting.unit and setting.value is not None else ""
        echo(
            style_text(setting.key, bold=True), f" = {_render_value(setting.value)}{unit}{changed}"
        )
        echo(f"  {setting.meaning}  [{setting.origin}]")
    if project:
        _print_unhonoured(project)


def _print_unhonoured(project: Project) -> None:
    from rekindle.wiring.starting import start_notes  # noqa: PLC0415 - loads every harness

    agents = project.declared_agents
    lines = [line for name in agents for line in start_notes.find_unhonoured(project, name)]
    for line in dict.fromkeys(lines):
        echo(f"Note: {line} (→ {start_notes.UNHONOURED_HINT})", err=True)


@config.command(short_help="Print the JSON Schema for rekindle.yaml.")
def schema() -> None:
    """Print the JSON Schema for rekindle.yaml, for editors and other tools."""
    print_bare_json(describe_manifest())


def _redact_setting(setting: SettingExplanation, redaction: Redaction) -> SettingExplanation:
    """Return an explanation, with secrets from `env:` redacted."""
    if not isinstance(setting.value, str | list | dict):
        return setting
    value = msgspec.json.decode(redaction.json(msgspec.json.encode(setting.value)))
    return msgspec.structs.replace(setting, value=value)


def _make_json(setting: SettingExplanation) -> dict[str, object]:
    return {
        "key": setting.key,
        "value": _to_plain(setting.value),
        "default": _to_plain(setting.default),
        "unit": setting.unit,
        "origin": setting.origin,
        "meaning": setting.meaning,
    }


def _to_plain(value: object) -> object:
    return str(value) if isinstance(value, Duration) else value


def _render_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, msgspec.Struct):
        pairs = ", ".join(
            f"{key}: {field}" for key, field in msgspec.structs.asdict(value).items() if field
        )
        return f"{{{pairs}}}"
    if value is None:
        return "not set"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return str(value) or '""'
