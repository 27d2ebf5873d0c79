"""Ask the summarizer for a second opinion before the reaction to a stall is chosen."""

from collections.abc import Callable

import msgspec

from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.documents.events import CycleEnded
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.relay import Relay
from rekindle.errors import AgentError, RekindleError, StoppedError, SummaryError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection.projection import Projection
from rekindle.policy.stall.opinion_effect import OpinionVerdict, list_evidence
from rekindle.policy.stall.second_opinion import (
    Opinion,
    build_opinion_request,
    parse_opinion,
)
from rekindle.policy.stall.stall_response import needs_opinion
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.policy.supervision import budget
from rekindle.system.git.work_status import GitStatus
from rekindle.thresholds.supervision import STOP_SECONDS
from rekindle.thresholds.texts import DID_CHARACTERS


class OpinionAsker:
    def __init__(
        self, agent: AgentSpec, world: SupervisorPorts, summarizer: Callable[[], Summarizer]
    ) -> None:
        self._agent, self._ports, self._summarizer = agent, world, summarizer

    def add(self, ended: CycleEnded, relay: Relay | None, now: Projection) -> CycleEnded:
        """Return the end of a cycle, with a second opinion if one is needed.

        Raises:
            StoppedError: The operator stopped the agent. The question is repeated later.
        """
        is_needed = needs_opinion(
            now.ended,
            ended,
            since=now.run.intervened,
            settings=self._ports.settings.runtime.stall,
            sees_work=GitStatus(self._agent.folder).is_known,
        )
        if relay is None or not is_needed:
            return ended
        text = relays.render(relay)
        try:
            answer = self._ask(text, ended, now)
            opinion = parse_opinion(answer.text, text, list_evidence(ended))
        except StoppedError:
            raise
        except RekindleError as error:
            reason = self._ports.store.redaction.text(str(error))
            opinion = Opinion(OpinionVerdict.UNUSABLE, to_one_line(reason, DID_CHARACTERS))
        if opinion.verdict == OpinionVerdict.UNUSABLE:
            self._ports.tell(TroubleReport(f"there is no second opinion: {opinion.words}"))
        return msgspec.structs.replace(ended, opinion=opinion.verdict, opinion_words=opinion.words)

    def _ask(self, relay: str, ended: CycleEnded, now: Projection) -> OneShotAnswer:
        """Return the answer, and record its cost.

        Raises:
            AgentError: The run's budget is spent.
            SummaryError: There is no answer.
            StoppedError: The operator stopped the agent.
        """
        spent = now.run.run_spending()
        cap = budget.raise_caps(self._agent.budget, now.run.raised_caps())
        if words := budget.describe_reached_cap(spent, cap, began=None, now=self._ports.clock()):
            raise AgentError(words)
        most = self._ports.settings.runtime.relay.summarizer_max_usd
        left = most if cap is None or cap.usd is None else cap.usd - spent.usd

        def build(nonce: str) -> SummaryRequest:
            request = build_opinion_request(relay, ended, nonce)
            return msgspec.structs.replace(request, spent=max(most - left, 0.0))

        began = self._ports.elapsed()
        try:
            answer = self._summarizer().ask_once(build)
        except SummaryError as error:
            if error.usd or error.tokens:
                self._record(error.usd, error.tokens, began)
            raise
        self._record(answer.usd or 0.0, answer.tokens or 0, began)
        return answer

    def _record(self, usd: float, tokens: int, began: float) -> None:
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            spent = writer.projection.run.run_spending()
            made = events.SummaryMade(
                ts=self._ports.clock(),
                document="opinion",
                how="headless",
                usd=usd,
                tokens=tokens,
                seconds=self._ports.elapsed() - began,
                run_usd=spent.usd + usd,
                run_tokens=spent.tokens + tokens,
                unpriced=spent.unpriced,
                is_estimated=spent.is_estimated,
            )
            writer.append(made)
