"""Build the spans of an agent's runs, cycles and sessions from its log.

The ids are derived from the run, so another export of the same log sends the same spans. Names and
attributes follow OpenTelemetry's conventions for generative AI, as of version 1.41. Text from
agents is left out.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.traces.trace_span import AttributeValue, SpanMark, TraceSpan
from rekindle.policy.projection.projection import Projection

PROVIDERS = {"claude-code": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}
"""Values of `gen_ai.provider.name` for harnesses whose models come from one provider."""
_MARKED: dict[type[events.Event], tuple[str, ...]] = {
    events.WaitStarted: ("why",),
    events.SafeModeEntered: ("why",),
    events.HandoffTriggered: ("by",),
    events.HangDetected: ("ended",),
    events.OwnerChanged: ("host", "previous"),
    events.WorkspacePushFailed: (),
    events.SessionCompacted: ("trigger",),
}
"""Events that are marked on the innermost open span, with the fields that the mark shows."""


class _OpenSpan(msgspec.Struct):
    name: str
    id: str
    parent: str
    start: datetime
    attributes: dict[str, AttributeValue]
    marks: list[SpanMark] = []


class TraceReader:
    """Turns one agent's events into finished spans, one event at a time."""

    def __init__(self, project: str, agent: str) -> None:
        self._project, self._agent = project, agent
        self._trace = ""
        self._open: dict[str, _OpenSpan] = {}
        """Spans that have not ended, from the outermost to the innermost."""
        self._models: dict[str, str] = {}
        """Models that each harness reported last."""
        self._tokens = 0
        """Tokens that the run had used at the last report."""

    def read(self, new: Iterable[AnyEvent | UnknownEvent]) -> Iterator[TraceSpan]:
        """Yield the spans that these events end."""
        for event in new:
            if not isinstance(event, UnknownEvent):
                yield from self._read_event(event)

    def _read_event(self, event: AnyEvent) -> Iterator[TraceSpan]:
        if isinstance(event, events.WindowSizeReported):
            self._models[event.harness] = event.model
        elif isinstance(event, events.AgentReceived):
            self._continue(msgspec.convert(event.known, Projection, str_keys=True), event.ts)
        elif isinstance(event, events.RunStarted):
            yield from self._close("run", event.ts)
            self._start_run(event.seq, event.ts)
        elif not self._trace:
            return  # the log does not show which run this belongs to
        elif isinstance(event, events.RunEnded):
            yield from self._close("run", event.ts, {"rekindle.outcome": event.why})
        else:
            yield from self._read_work(event)

    def _read_work(self, event: AnyEvent) -> Iterator[TraceSpan]:
        match event:
            case events.CycleStarted():
                yield from self._close("cycle", event.ts)
                self._start_cycle(event.cycle, event.ts)
            case events.CycleEnded():
                self._open.setdefault("cycle", self._make_cycle(event.cycle, event.ts))
                found = {"rekindle.verdict": event.verdict} if event.verdict else {}
                yield from self._close("cycle", event.ts, found)
            case events.LaunchStarted():
                yield from self._close("session", event.ts, failure="lost")
                self._start_session(event)
            case events.LaunchEnded() if "session" in self._open:
                yield from self._end_session(event)
            case _ if (fields := _MARKED.get(type(event))) is not None and self._open:
                attributes = {f"rekindle.{name}": getattr(event, name) for name in fields}
                [*self._open.values()][-1].marks.append(
                    SpanMark(event.ts, f"rekindle.{event.kind}", attributes)
                )
            case _:
                pass

    def _continue(self, known: Projection, at: datetime) -> None:
        """Continue a run that started before this log, for example on another host."""
        self._open.clear()
        self._trace = ""
        run = known.run
        if run.began and not run.is_over:
            self._start_run(run.began, run.began_at or at)
            self._tokens = run.spent.tokens
            if known.is_cycle_open:
                self._start_cycle(known.cycle, at)

    def _start_run(self, began: int, at: datetime) -> None:
        # The position of a run's start is the same in the logs of all hosts.
        self._trace = _hash(self._project, self._agent, str(began))[:32]
        self._tokens = 0
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self._agent,
        }
        self._open["run"] = _OpenSpan(
            f"invoke_workflow {self._agent}", self._make_id("run"), "", at, attributes
        )

    def _start_cycle(self, cycle: int, at: datetime) -> None:
        self._open["cycle"] = self._make_cycle(cycle, at)

    def _make_cycle(self, cycle: int, at: datetime) -> _OpenSpan:
        own = self._make_id("cycle", str(cycle))
        return _OpenSpan("cycle", own, self._make_id("run"), at, {"rekindle.cycle": cycle})

    def _start_session(self, event: events.LaunchStarted) -> None:
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent,
            "rekindle.harness": event.harness,
            "rekindle.resumes": event.resumes,
        }
        if provider := PROVIDERS.get(event.harness):
            attributes["gen_ai.provider.name"] = provider
        cycle = self._open.get("cycle")
        self._open["session"] = _OpenSpan(
            f"invoke_agent {self._agent}",
            self._make_id("session", event.launch),
            cycle.id if cycle else self._make_id("cycle", str(event.cycle)),
            event.ts,
            attributes,
        )

    def _end_session(self, event: events.LaunchEnded) -> Iterator[TraceSpan]:
        found: dict[str, AttributeValue] = {"rekindle.exit": event.exit}
        harness = self._open["session"].attributes["rekindle.harness"]
        if model := self._models.get(str(harness)):
            found["gen_ai.request.model"] = model
        if event.session:
            found["gen_ai.conversation.id"] = event.session
        if event.run_tokens > self._tokens:
            found["rekindle.tokens"] = event.run_tokens - self._tokens
            self._tokens = event.run_tokens
        if event.usd is not None:
            found["rekindle.cost_usd"] = event.usd
        yield from self._close(
            "session", event.ts, found, failure="" if event.exit == "clean" else event.exit
        )

    def _close(
        self,
        kind: str,
        at: datetime,
        found: Mapping[str, AttributeValue] | None = None,
        *,
        failure: str = "",
    ) -> Iterator[TraceSpan]:
        """Yield the open span of this kind, after the spans within it."""
        if kind not in self._open:
            return
        while self._open:
            innermost, span = self._open.popitem()
            is_asked = innermost == kind
            attributes = span.attributes | (dict(found or {}) if is_asked else {})
            failed = failure if is_asked else ""
            yield TraceSpan(
                name=span.name,
                trace=self._trace,
                id=span.id,
                parent=span.parent,
                start=span.start,
                end=at,
                attributes=attributes | ({"error.type": failed} if failed else {}),
                marks=tuple(span.marks),
                failure=failed,
            )
            if is_asked:
                return

    def _make_id(self, *words: str) -> str:
        return _hash(self._trace, *words)[:16]


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()
