"""Collect the material for a brief: the new turns, the work in git, and a summarizer's answer."""

import secrets
from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import partial
from typing import Literal

import msgspec

from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.state import parse_time
from rekindle.documents.summaries import day_summary as days
from rekindle.documents.summaries.day_summary import DaySummary
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import OverBudgetError
from rekindle.flows.briefs.unreported_turns import SupervisedSessions, UnreportedTurns
from rekindle.flows.transcripts.summarize_turns import ask_twice
from rekindle.policy.briefs import brief_request
from rekindle.policy.briefs.brief_schedule import DueBrief
from rekindle.policy.briefs.claim_check import GitWork
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    BRIEF_PIECES,
    BRIEF_TURN_CHARACTERS,
    RuntimeSettings,
)
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.summarizers.mechanical_summary import TurnDigest


class BriefPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The ports and settings that a brief writer needs."""

    ask: Callable[[SummaryRequest], OneShotAnswer] | None
    """Function that asks the summarizer's model; None if no summarizer is configured."""
    words: str = ""
    """Extra instructions for the summarizer's model."""
    archive: Callable[[], None]
    """Function that archives the new parts of the session transcripts."""
    work: Callable[[datetime | None], GitWork]
    """Function that returns the work since a given time, according to git."""
    clock: Callable[[], datetime]
    zone: tzinfo
    runtime: RuntimeSettings
    task: str = ""
    """The task that the supervisor gives to every session."""
    asks: bool = True
    """Whether the supervisor writes the sessions' prompts; False if a person does."""
    nonce: Callable[[], str] = lambda: secrets.token_hex(16)


class BriefMaterial(msgspec.Struct, frozen=True, kw_only=True):
    """The new turns, and the summarizer's answer about them."""

    projection: Projection
    """The projection at the time when the material was collected."""
    now: datetime
    due: DueBrief | None
    unreported: UnreportedTurns
    digest: TurnDigest
    turns: tuple[Turn, ...]
    work: GitWork = GitWork()
    day: DaySummary = DaySummary()
    asked: bool = False
    words: str = ""
    is_unusable: bool = False
    """Whether the summarizer's answer was unusable."""
    left_out: int = 0
    usd: float = 0.0
    tokens: int = 0

    @property
    def how(self) -> Literal["headless", "mechanical", ""]:
        if not self.turns:
            return ""
        return "headless" if self.asked and not self.words else "mechanical"


class MaterialCollector:
    """Collects the material for one agent's briefs."""

    def __init__(self, store: FileStore, agent: str, ports: BriefPorts) -> None:
        self._store, self._agent, self._ports = store, agent, ports

    def collect(self, due: DueBrief | None) -> BriefMaterial:
        """Return the new turns, and the work that git shows since the first new turn."""
        # The next brief will report events after this time.
        now = self._ports.clock()
        projection = self._store.read(self._agent).projection
        archive = TranscriptArchive(self._store.folder(self._agent).transcripts)
        task = self._store.redaction.text(self._ports.task)
        ours = SupervisedSessions(
            _select_supervised(projection) if self._ports.asks else frozenset(), task
        )
        room = self._count_room()
        unreported = UnreportedTurns(archive, projection.briefed, now, room, ours)
        digest = TurnDigest()
        turns = tuple(digest.of(unreported.turns))
        began = next((at for turn in turns if (at := parse_time(turn.at))), None)
        return BriefMaterial(
            projection=projection,
            now=now,
            due=due,
            unreported=unreported,
            digest=digest,
            turns=turns,
            work=self._ports.work(began) if turns else GitWork(),
            left_out=unreported.left_out,
        )

    def ask_model(self, material: BriefMaterial) -> BriefMaterial:
        """Ask about each piece of the turns, newest first, until a piece gets no answer.

        Turns that exceed a brief's cost cap are left out and counted. Without a summarizer or
        turns, return the material unchanged.
        """
        ask = self._ports.ask
        if ask is None or not material.turns:
            return material
        try:
            asked = self._build_requests(material)
        except OverBudgetError as error:
            return msgspec.structs.replace(material, asked=True, words=str(error))
        summaries: list[DaySummary] = []
        usd, tokens, words, left_out, is_unusable = 0.0, 0, "", asked.left_out, False
        cap, whole = self._ports.runtime.relay.summarizer_max_usd, self._ports.runtime.brief
        for request in reversed(asked.requests):
            if usd >= whole.max_usd:
                left_out += len(request.turns)
                continue
            # An answer may cost up to its own cap, but not more than the brief's remaining budget.
            before = max(0.0, cap - (whole.max_usd - usd))
            capped = msgspec.structs.replace(request, spent=before)
            reply = ask_twice(ask, capped, partial(days.parse, turns=request.numbers))
            usd, tokens, words = usd + reply.usd, tokens + reply.tokens, reply.words
            if reply.found is None:
                is_unusable = reply.is_unusable
                break
            summaries.append(reply.found)
        return msgspec.structs.replace(
            material,
            day=brief_request.merge_days(summaries[::-1]),
            asked=True,
            words=self._store.redaction.text(words),
            is_unusable=is_unusable,
            left_out=material.left_out + left_out,
            usd=usd,
            tokens=tokens,
        )

    def _build_requests(self, material: BriefMaterial) -> brief_request.BriefRequests:
        limits, projection, now = self._ports.runtime, material.projection, material.now
        before = brief_request.KnownState(
            open_loops.list_open_loops(projection.loops, now, limits.loops),
            open_loops.list_recently_resolved(projection.loops, now, limits.loops),
            {key: number.value for key, number in projection.numbers.items()},
        )
        return brief_request.build_brief_requests(
            material.turns,
            before,
            nonce=self._ports.nonce(),
            cap=limits.relay.summarizer_max_input_tokens,
            words=self._ports.words,
        )

    def _count_room(self) -> int:
        """Return how many characters of turns fit into the requests for one brief."""
        cap = self._ports.runtime.relay.summarizer_max_input_tokens
        return cap * BRIEF_PIECES * BRIEF_TURN_CHARACTERS


def _select_supervised(known: Projection) -> frozenset[str]:
    """Return the recorded sessions that a supervisor started."""
    launched = {launch.session for launch in known.attempts.values()}
    return frozenset(launched | {name for name, life in known.lives.items() if life.launch})
