"""Classify a relay, and report its problems."""

import re
from enum import StrEnum

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import HEADLINE_CHARACTERS
from rekindle.policy.text.token_estimate import estimate_tokens
from rekindle.thresholds.texts import QUOTED_CHARACTERS


class RelayKind(StrEnum):
    """Kinds of relay, from harmless to severe."""

    OK = "ok"
    OVER_CAP = "over-cap"
    SEVERAL_DIRECTIVES = "several-directives"
    PLACEHOLDER = "placeholder-directive"
    BLANK = "blank-directive"
    NO_DIRECTIVE = "no-directive"
    EMPTY = "empty"


_EMPHASIS = re.compile(r"(\*{1,3})(\S(?:[^*]{0,400}\S)?)\1")
_FENCE_MARKS = ("```", "~~~")

USABLE_KINDS = frozenset({RelayKind.OK, RelayKind.OVER_CAP, RelayKind.SEVERAL_DIRECTIVES})


class RelayFinding(msgspec.Struct, frozen=True):
    kind: str
    message: str


class RelayReport(msgspec.Struct, frozen=True):
    kind: RelayKind
    """Kind of the most severe finding."""
    usable: bool
    tokens: int
    fields: tuple[str, ...]
    missing: tuple[str, ...]
    headline: str
    findings: tuple[RelayFinding, ...]


def classify_relay(relay: Relay, cap: int) -> RelayReport:
    text = relays.render(relay)
    tokens = estimate_tokens(text)
    present = tuple(field for field in RelayField if relay.places(field))
    missing = tuple(
        field for field in RelayField if field not in {*present, *relays.OPTIONAL_FIELDS}
    )
    findings = list(_find_problems(relay, text, tokens, cap))
    if missing and text.strip():
        findings.append(RelayFinding("missing-fields", f"fields not found: {', '.join(missing)}"))
    kind = next(
        (RelayKind(finding.kind) for finding in findings if finding.kind in set(RelayKind)),
        RelayKind.OK,
    )
    return RelayReport(
        kind, kind in USABLE_KINDS, tokens, present, missing, find_headline(relay), tuple(findings)
    )


def find_headline(relay: Relay) -> str:
    """Return the first meaningful line of the directive."""
    for line in (relay.next_action or "").splitlines():
        bare = _EMPHASIS.sub(r"\2", line.strip()).lstrip("#>*+-_ \t").strip("*_ \t")
        is_mark = bare.startswith((*_FENCE_MARKS, "<!--")) or relays.match_field(bare) is not None
        if not is_mark and not relays.is_placeholder(bare):
            return to_one_line(bare, HEADLINE_CHARACTERS)
    return ""


def _reports_end(relay: Relay) -> bool:
    # Imported here, because compiling `claimed_end`'s patterns takes longer than starting a
    # command.
    from rekindle.policy.relay.claimed_end import reports_all_done  # noqa: PLC0415

    return reports_all_done(relay)


def _find_problems(relay: Relay, text: str, tokens: int, cap: int) -> list[RelayFinding]:
    if not text.strip():
        return [RelayFinding(RelayKind.EMPTY, "the relay is empty")]
    findings = []
    directive = relay.content(RelayField.NEXT_ACTION)
    if directive is None:
        findings.append(
            RelayFinding(
                RelayKind.NO_DIRECTIVE,
                "there is no `## Next Action`, so the next cycle has no task",
            )
        )
    elif relay.next_action is not None:
        pass
    elif not directive.strip():
        findings.append(
            RelayFinding(RelayKind.BLANK, "the Next Action is blank: write the next step")
        )
    elif relays.is_placeholder(directive) and not _reports_end(relay):
        words = to_one_line(directive, QUOTED_CHARACTERS)
        findings.append(RelayFinding(RelayKind.PLACEHOLDER, f"the Next Action only says {words!r}"))
    places = relay.places(RelayField.NEXT_ACTION)
    if len(places) > 1:
        title = relay.outline.sections[places[0]].title
        findings.append(
            RelayFinding(
                RelayKind.SEVERAL_DIRECTIVES,
                f"there are {len(places)} Next Action sections; the first one, {title!r}, counts",
            )
        )
    if tokens > cap:
        findings.append(
            RelayFinding(
                RelayKind.OVER_CAP,
                f"about {render_count(tokens, 'token')}, above the cap of {cap:,}: to be trimmed",
            )
        )
    return findings
