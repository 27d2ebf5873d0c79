"""Names of all metrics, with their types, labels and help texts.

Label values are names from the manifest or words from a closed list, never ids or free text.
"""

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    labels: tuple[str, ...] = ()
    """Labels besides `project` and `agent`, or besides `host` and `pool`."""


PROJECT_UP = Metric("rekindle_project_up", "gauge", "1 if the project's agents could be read.")
AGENT_INFO = Metric("rekindle_agent_info", "gauge", "Always 1.", ("harness",))
AGENT_STATE = Metric(
    "rekindle_agent_state", "gauge", "1 for the agent's current state.", ("state",)
)
WINDOW_USED = Metric(
    "rekindle_window_used_ratio", "gauge", "Used share of the last session's context window."
)
BUDGET_USED = Metric(
    "rekindle_budget_used_ratio", "gauge", "Used share of the run's budget.", ("of",)
)
OPEN_LOOPS = Metric("rekindle_open_loops", "gauge", "Number of open loops.", ("stale",))
OPEN_QUESTIONS = Metric(
    "rekindle_open_questions", "gauge", "Number of questions that a person can answer now."
)
LAST_ACTIVE = Metric(
    "rekindle_last_active_timestamp_seconds", "gauge", "Time of the agent's last sign of life."
)
WAITS_UNTIL = Metric(
    "rekindle_waits_until_timestamp_seconds", "gauge", "Time at which a waiting agent continues."
)
CYCLES = Metric("rekindle_cycles_total", "counter", "Number of ended cycles.", ("verdict",))
LAUNCHES = Metric("rekindle_launches_total", "counter", "Number of ended launches.", ("exit",))
HANDOFFS = Metric("rekindle_handoffs_total", "counter", "Number of handoffs.", ("by",))
TOKENS = Metric("rekindle_tokens_total", "counter", "Tokens that the agent's runs have used.")
COST = Metric("rekindle_cost_usd_total", "counter", "Cost of the agent's runs in dollars.")

METRICS = (
    *(PROJECT_UP, AGENT_INFO, AGENT_STATE, WINDOW_USED, BUDGET_USED),
    *(OPEN_LOOPS, OPEN_QUESTIONS, LAST_ACTIVE, WAITS_UNTIL),
    *(CYCLES, LAUNCHES, HANDOFFS, TOKENS, COST),
)

HOST_SLOTS = Metric("rekindle_host_slots", "gauge", "Number of agents that the host may run.")
HOST_SESSIONS = Metric("rekindle_host_sessions", "gauge", "Number of agents that the host runs.")
ENGINE_ANSWERED = Metric(
    "rekindle_engine_answered_timestamp_seconds", "gauge", "Time of the engine's last answer."
)
TAKEOVERS = Metric(
    "rekindle_takeovers_total",
    "counter",
    "Number of agents that the host took over from another host.",
    ("cause",),
)
CUT_OFFS = Metric(
    "rekindle_cut_offs_total",
    "counter",
    "Number of sessions that the host ended because the engine did not answer.",
)
PUSH_FAILURES = Metric("rekindle_push_failures_total", "counter", "Number of failed pushes.")
UNPUSHED_AGENTS = Metric(
    "rekindle_unpushed_agents", "gauge", "Number of agents whose work exists only on the host."
)
FLEET_AGENTS = Metric(
    "rekindle_fleet_agents", "gauge", "Number of agents on the whole fleet by state.", ("state",)
)

HOST_METRICS = (
    *(HOST_SLOTS, HOST_SESSIONS, ENGINE_ANSWERED, TAKEOVERS, CUT_OFFS),
    *(PUSH_FAILURES, UNPUSHED_AGENTS, FLEET_AGENTS),
)
"""Metrics that only hosts of a fleet have, with the labels `host` and `pool`."""

HOSTED_AGENT_METRICS = (AGENT_STATE, LAST_ACTIVE, CYCLES, LAUNCHES, HANDOFFS, TOKENS, COST)
"""Agents' metrics that hosts of a fleet have too, with the labels `host` and `pool` in addition."""

ENGINE_CLIENT_METRICS = (
    "temporal_request_failure",
    "temporal_request_latency_bucket",
    "temporal_workflow_task_execution_failed",
    "temporal_workflow_task_schedule_to_start_latency_bucket",
)
"""Names of the Temporal SDK's metrics that the alert rules and the dashboard use."""
