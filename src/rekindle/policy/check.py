"""Check: what kind of relay a text is, and what to do about it."""

import re
from enum import StrEnum

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Field, Relay
from rekindle.policy.settings import HEADLINE_CHARACTERS
from rekindle.policy.tokens import estimate
from rekindle.thresholds.texts import QUOTED_CHARACTERS


class Kind(StrEnum):
    """From harmless to grave."""

    OK = "ok"
    OVER_CAP = "over-cap"
    SEVERAL_DIRECTIVES = "several-directives"
    PLACEHOLDER = "placeholder-directive"
    BLANK = "blank-directive"
    NO_DIRECTIVE = "no-directive"
    EMPTY = "empty"


_EMPHASIS = re.compile(r"(\*{1,3})(\S(?:[^*]{0,400}\S)?)\1")
_FENCE_MARKS = ("```", "~~~")

USABLE = frozenset({Kind.OK, Kind.OVER_CAP, Kind.SEVERAL_DIRECTIVES})


class Finding(msgspec.Struct, frozen=True):
    kind: str
    message: str


class Checked(msgspec.Struct, frozen=True):
    kind: Kind
    """The gravest thing to say about it."""
    usable: bool
    tokens: int
    fields: tuple[str, ...]
    missing: tuple[str, ...]
    headline: str
    findings: tuple[Finding, ...]


def check(relay: Relay, cap: int) -> Checked:
    text = relays.render(relay)
    tokens = estimate(text)
    present = tuple(field for field in Field if relay.places(field))
    missing = tuple(field for field in Field if field not in present)
    found = list(_findings(relay, text, tokens, cap))
    if missing and text.strip():
        found.append(Finding("missing-fields", f"fields not found: {', '.join(missing)}"))
    kind = next((Kind(one.kind) for one in found if one.kind in set(Kind)), Kind.OK)
    return Checked(kind, kind in USABLE, tokens, present, missing, headline(relay), tuple(found))


def headline(relay: Relay) -> str:
    """The directive's first line of substance."""
    for line in (relay.next_action or "").splitlines():
        bare = _EMPHASIS.sub(r"\2", line.strip()).lstrip("#>*+-_ \t").strip("*_ \t")
        is_mark = bare.startswith((*_FENCE_MARKS, "<!--")) or relays.field_of(bare) is not None
        if not is_mark and not relays.is_placeholder(bare):
            return one_line(bare, HEADLINE_CHARACTERS)
    return ""


def _claims_end(relay: Relay) -> bool:
    # Compiling its patterns takes longer than a command takes to start.
    from rekindle.policy.claimed_end import claims_end  # noqa: PLC0415

    return claims_end(relay)


def _findings(relay: Relay, text: str, tokens: int, cap: int) -> list[Finding]:
    if not text.strip():
        return [Finding(Kind.EMPTY, "the relay is empty")]
    found = []
    directive = relay.content(Field.NEXT_ACTION)
    if directive is None:
        found.append(Finding(Kind.NO_DIRECTIVE, "no `## Next Action`: the next cycle has no task"))
    elif relay.next_action is not None:
        pass
    elif not directive.strip():
        found.append(Finding(Kind.BLANK, "Next Action is blank: say what comes next"))
    elif relays.is_placeholder(directive) and not _claims_end(relay):
        words = one_line(directive, QUOTED_CHARACTERS)
        found.append(Finding(Kind.PLACEHOLDER, f"Next Action only says {words!r}"))
    places = relay.places(Field.NEXT_ACTION)
    if len(places) > 1:
        title = relay.outline.sections[places[0]].title
        found.append(
            Finding(
                Kind.SEVERAL_DIRECTIVES,
                f"{len(places)} Next Action sections: {title!r}, the first, governs",
            )
        )
    if tokens > cap:
        found.append(
            Finding(Kind.OVER_CAP, f"about {tokens:,} tokens, the cap is {cap:,}: will be trimmed")
        )
    return found
