"""Build the prompt and the launch specification for an agent's next session."""

import uuid
from pathlib import Path

import msgspec

from rekindle.documents import primer
from rekindle.documents.launches.background_record import render_ended_notice
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.primer import Primer
from rekindle.flows.priming.compose_primer import compose_primer
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.handoff.window_rule import REPETITION_CAUSE
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord


class LaunchPrompts:
    """Builds the prompts and specifications for one agent's launches."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world

    def render_resume(self, tried: list[LaunchRecord], known: Projection) -> str:
        """Return the prompt for a resumed session.

        It lists the processes that were killed, and contains the messages that people have sent.
        The first prompt in a session from elsewhere also has the rules and the open loops.
        """
        if tried and (notice := primer.ORIGIN_PROMPTS.get(tried[-1].origin)):
            composed = self._compose(known, task="", recovering=False)
            return f"{notice}\n{primer.render(composed)}"
        notice = render_ended_notice(tried[-1].swept) if tried else ""
        parts = filter(None, (notice, primer.render_messages(known.waiting_messages)))
        return "".join([primer.RESUME_PROMPT, *(f"\n{part}\n" for part in parts)])

    def render_fresh(
        self,
        known: Projection,
        tried: list[LaunchRecord],
        *,
        recovering: bool,
        handed: str,
        interrupting: str,
    ) -> str:
        """Return the prompt for a fresh session.

        `handed` is the path of the checkpoint to continue from. `interrupting` is the user request
        that was interrupted when the previous session was stopped.
        """
        asked = ""
        if handed and self._agent.stays:
            asked = self._find_request(known, tried[-1], interrupting)
        composed = self._compose(known, task=asked or self._agent.task, recovering=recovering)
        if handed and tried[-1].handed_by == REPETITION_CAUSE:
            notice = primer.render_repetition(tried[-1].words)
            composed = msgspec.structs.replace(composed, stall=notice)
        return primer.render(composed)

    def _compose(self, known: Projection, *, task: str, recovering: bool) -> Primer:
        return compose_primer(
            self._ports.store,
            self._agent.name,
            self._ports.store.read(self._agent.name),
            now=self._ports.clock(),
            settings=self._ports.settings,
            rules=self._agent.rules,
            task=task,
            recovering=recovering,
            draft=self._find_draft_path(),
            messages=known.waiting_messages,
            converges=self._agent.converges,
            branch=self._agent.branch,
        )

    def make_launch_spec(
        self, step: StartFresh | ResumeSession, cap: Budget | None, known: Projection, prompt: str
    ) -> LaunchSpec:
        """Return the launch specification."""
        life = known.lives.get(step.session) if isinstance(step, ResumeSession) else None
        own = str(uuid.uuid4()) if self._agent.harness.CAN.names_sessions else ""
        usd = cap.usd if cap else None
        return LaunchSpec(
            session=step.session if isinstance(step, ResumeSession) else own,
            resumes=isinstance(step, ResumeSession),
            persona=self._agent.persona,
            instructions=self._agent.instructions,
            program=self._agent.program,
            usd_left=None if usd is None else max(usd - known.run.run_spending().usd, 0.0),
            session_usd=life.usd if life else 0.0,
            interactive=self._agent.stays,
            draft=self._find_draft_path(),
            prompt=prompt if self._agent.stays else "",
        )

    def _find_request(self, known: Projection, last: LaunchRecord, interrupting: str) -> str:
        """Return the user request that the last handoff interrupted, or "".

        The hook saves the full request. If the supervisor has crashed since then, only the
        shortened copy in the log is left.
        """
        if interrupting:
            return primer.render_request(interrupting)
        life = known.lives.get(last.session)
        return primer.render_request(life.asked.text) if life is not None and life.asked else ""

    def _find_draft_path(self) -> str:
        """Return the path for the agent's next relay draft, or "" if it does not write one."""
        is_asked = self._agent.drafts and self._agent.persona.writes and not self._agent.stays
        if is_asked and self._agent.relay:
            return str(Path(self._agent.project) / self._agent.relay)
        return str(self._ports.store.folder(self._agent.name).draft) if is_asked else ""
