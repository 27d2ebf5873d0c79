"""Collect the material for a brief: new turns, work in git, and a model's summary."""

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
    """Functions and settings that a brief writer needs."""

    ask: Callable[[SummaryRequest], OneShotAnswer] | None
    """Asks the summarizer's model; None if no summarizer is configured."""
    words: str = ""
    """Extra instructions for the summarizer's model."""
    archive: Callable[[], None]
    """Archives the new parts of the session transcripts."""
    work: Callable[[datetime | None], GitWork]
    """Returns the work since a given time, according to git."""
    clock: Callable[[], datetime]
    zone: tzinfo
    runtime: RuntimeSettings
    task: str = ""
    """Task that the supervisor gives to each session."""
    asks: bool = True
    """Whether the supervisor writes the prompts; False if the user types them."""
    nonce: Callable[[], str] = lambda: secrets.token_hex(16)


class BriefMaterial(msgspec.Struct, frozen=True, kw_only=True):
    """New turns, and the summarizer's result for them."""

    projection: Projection
    """Projection at the time of collection."""
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
    """Whether the model gave an answer that could not be used."""
    left_out: int = 0
    usd: float = 0.0
    tokens: int = 0

    @property
    def how(self) -> Literal["headless", "mechanical", ""]:
        if not self.turns:
            return ""
        return "headless" if self.asked and not self.words else "mechanical"


class MaterialCollector:
    def __init__(self, store: FileStore, agent: str, ports: BriefPorts) -> None:
        self._store, self._agent, self._ports = store, agent, ports

    def collect(self, due: DueBrief | None) -> BriefMaterial:
        """Return the new turns, and the work in git since the first of them."""
        # Read the clock first, because the next brief starts at this time.
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
        """Ask the model about the turns in pieces, newest first, and stop if a piece fails.

        Turns beyond the cost cap are left out and counted. Without a summarizer or new turns, the
        material is returned unchanged.
        """
        ask = self._ports.ask
        if ask is None or not material.turns:
            return material
        try:
            batch = self._build_requests(material)
        except OverBudgetError as error:
            return msgspec.structs.replace(material, asked=True, words=str(error))
        summaries: list[DaySummary] = []
        usd, tokens, words, left_out, is_unusable = 0.0, 0, "", batch.left_out, False
        cap, brief_limits = self._ports.runtime.relay.summarizer_max_usd, self._ports.runtime.brief
        for request in reversed(batch.requests):
            if usd >= brief_limits.max_usd:
                left_out += len(request.turns)
                continue
            # Each request has its own cap, and must also fit into the brief's remaining budget.
            before = max(0.0, cap - (brief_limits.max_usd - usd))
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
        """Return how many characters of turns fit into one brief's requests in total."""
        cap = self._ports.runtime.relay.summarizer_max_input_tokens
        return cap * BRIEF_PIECES * BRIEF_TURN_CHARACTERS


def _select_supervised(projection: Projection) -> frozenset[str]:
    """Return the sessions that a supervisor started."""
    launched = {launch.session for launch in projection.attempts.values()}
    return frozenset(launched | {name for name, life in projection.lives.items() if life.launch})
