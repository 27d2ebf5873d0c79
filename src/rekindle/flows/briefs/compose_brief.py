"""Compose an agent's brief from the collected material and its open loops."""

from rekindle.documents.brief import Brief, BriefLabel
from rekindle.documents.summaries.summary import list_carried_items, make_line
from rekindle.flows.briefs.brief_material import BriefMaterial, BriefPorts
from rekindle.flows.read_documents import read_relay
from rekindle.formats.counts import render_count
from rekindle.policy.briefs import brief_content as policy
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import BRIEF_UNUSABLE
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.policy.supervision.run_moves import is_done
from rekindle.stores.files import FileStore
from rekindle.summarizers.mechanical_summary import KnownWork, summarize_digest


class BriefComposer:
    def __init__(self, store: FileStore, agent: str, ports: BriefPorts) -> None:
        self._store, self._agent, self._ports = store, agent, ports

    def compose(
        self,
        earlier: Projection,
        after: Projection,
        material: BriefMaterial,
        texts: SourceTexts,
        before: Brief | None,
    ) -> Brief:
        """Return the brief. `earlier` and `after` are the projections before and after it."""
        limits, now = self._ports.runtime, material.now
        page = before if earlier.briefed.morning == after.briefed.morning else None
        is_told = earlier.briefed.until_morning == after.briefed.morning
        if earlier.briefed.failed and not is_told:
            page = None  # the old page was written without a model, so replace it
        changed, following = self._render_changes(material, texts)
        if material.words and page and not material.day.changed:
            changed = []  # leave the page unchanged, so that a later brief can complete it
        risk = tuple(item.text for item in texts.attribute_claims(material.day.risk))
        if not material.turns and page:
            risk = list_carried_items(page.content(BriefLabel.RISK) or "")
        content = policy.BriefContent(
            changed=policy.merge_changes(page, [*changed, *_render_outcome(earlier, material)]),
            more=policy.count_left_out(page),
            next=""
            if is_done(earlier.run)  # finished work has no next step, even if the relay names one
            else following or (before and before.content(BriefLabel.NEXT)) or "not known",
            risk=(*_render_notes(earlier, material), *risk),
            open=open_loops.list_open_loops(after.loops, now, limits.loops),
            claimed=after.briefed.claimed,
            numbers={key: number.value for key, number in after.numbers.items()},
        )
        day = now.astimezone(self._ports.zone).date()
        return policy.compose_brief(self._agent, day, content, limits.brief.max_tokens)

    def _render_changes(self, material: BriefMaterial, texts: SourceTexts) -> tuple[list[str], str]:
        """Return the changes and the next step. Without turns, take them from finished cycles."""
        if not material.turns:
            last_brief = material.projection.briefed.ts
            cycles = [
                cycle
                for cycle in material.projection.ended.values()
                if last_brief is None or cycle.ts > last_brief
            ]
            did = [f"cycle {cycle.cycle}: {cycle.did}" for cycle in cycles if cycle.did]
            return did, self._read_next_action() if cycles else ""
        work = material.work
        steps = texts.attribute_instructions(material.day.next, BriefLabel.NEXT)
        following = steps[0].text if steps else self._read_next_action()
        if material.day.changed or material.how == "headless":
            return policy.mark_claims(material.day.changed, material.turns, work, texts), following
        known_work = KnownWork(commits=work.commits, changed=work.changed, next_action=following)
        plain = summarize_digest("brief", material.digest, known_work).sections
        return [item.text for item in plain[BriefLabel.CHANGED]], plain[BriefLabel.NEXT][0].text

    def _read_next_action(self) -> str:
        relay = read_relay(self._store, self._agent)
        return ((relay and relay.next_action) or "").strip().split("\n", 1)[0]


def is_given_up(projection: Projection, material: BriefMaterial) -> bool:
    return material.is_unusable and projection.briefed.unusable + 1 >= BRIEF_UNUSABLE


def explain_failures(projection: Projection, material: BriefMaterial) -> list[str]:
    """Return the reasons why no model wrote the brief."""
    if not material.words:
        return []
    given_up = f"after {BRIEF_UNUSABLE} unusable answers, later briefs will not cover these turns"
    return [material.words, given_up] if is_given_up(projection, material) else [material.words]


def _render_notes(projection: Projection, material: BriefMaterial) -> list[str]:
    words = "; ".join(explain_failures(projection, material))
    notes = [f"no model could read all of this: {words}"] if words else []
    if count := projection.run.refused_call_count():
        calls = render_count(count, "tool call")
        notes.append(f"{calls} in this run: refused, no permission")
    if material.unreported.too_old:
        sessions = render_count(material.unreported.too_old, "session")
        notes.append(f"not included: {sessions} from long before the first brief")
    if material.left_out:
        notes.append(f"{material.left_out:,} of the oldest turns did not fit and were left out")
    return notes


def _render_outcome(projection: Projection, material: BriefMaterial) -> list[str]:
    """Return a line about the end of the run, or an empty list if the end is not new."""
    run = projection.run
    if not run.is_over or not (material.turns or run.ended.seq > projection.briefed.seq):
        return []
    outcome = stop_reasons.find_outcome(run.ended.why).words
    reason = explain_reasons.explain_reason(run.ended.why, run.ended.words)
    return [make_line(f"the run ended: {outcome} ({reason})")]
