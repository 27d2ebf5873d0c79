"""Thresholds for the web pages of `rekindle ui`."""

from rekindle.thresholds import declare_threshold

UI_PORT = declare_threshold(8377, "ui.port", "count", "Default port of `rekindle ui`.")
UI_LINK_SECONDS = declare_threshold(
    60.0, "ui.link_seconds", "seconds", "How long a link of `rekindle ui` can be opened, once."
)
UI_BODY_BYTES = declare_threshold(
    1024 * 1024, "ui.body_bytes", "bytes", "Maximum size of a request to `rekindle ui`."
)
UI_CHECK_SECONDS = declare_threshold(
    1.0, "ui.check_seconds", "seconds", "Interval at which `rekindle ui` looks for changes."
)
UI_IDLE_SECONDS = declare_threshold(
    5.0,
    "ui.idle_seconds",
    "seconds",
    "Maximum interval at which `rekindle ui` looks for changes while nothing changes.",
)
UI_BACK_OFF = declare_threshold(
    1.5, "ui.back_off", "count", "Factor by which the interval grows while nothing changes."
)
UI_CHECK_SHARE = declare_threshold(
    0.05,
    "ui.check_share",
    "share",
    "Maximum share of the time that `rekindle ui` spends looking for changes.",
)
UI_BATCH_SECONDS = declare_threshold(
    0.5,
    "ui.batch_seconds",
    "seconds",
    "How long `rekindle ui` reads agents before it shows those that it has read.",
)
UI_PROJECTS_SECONDS = declare_threshold(
    10.0, "ui.projects_seconds", "seconds", "Interval at which `rekindle ui` looks for projects."
)
UI_ALIVE_SECONDS = declare_threshold(
    15.0, "ui.alive_seconds", "seconds", "Interval at which a stream says that it is alive."
)
UI_ACTION_SECONDS = declare_threshold(
    120.0, "ui.action_seconds", "seconds", "Maximum duration of a command that a page runs."
)
UI_ACTIONS_KEPT = declare_threshold(
    1_000, "ui.actions_kept", "count", "Number of actions whose repetition is recognized."
)
UI_REASON_CHARACTERS = declare_threshold(
    300, "ui.reason_characters", "characters", "Maximum length of a reason in the fleet table."
)
UI_BATCH_AGENTS = declare_threshold(
    50, "ui.batch_agents", "count", "Number of agents that `rekindle ui` reads at a time."
)
UI_HITS = declare_threshold(50, "ui.hits", "count", "Maximum number of search results on a page.")
UI_OUTPUT_LINES = declare_threshold(
    200, "ui.output_lines", "lines", "Number of lines that a page shows of an agent's output."
)
UI_NIGHT_HOURS = declare_threshold(
    24 * 31, "ui.night_hours", "hours", "Longest period that a page shows of an agent's past."
)
TRACE_SECONDS = declare_threshold(
    10.0, "traces.seconds", "seconds", "Timeout for a request to an OpenTelemetry collector."
)
TRACE_POLL_SECONDS = declare_threshold(
    5.0,
    "traces.poll_seconds",
    "seconds",
    "Interval at which `rekindle traces --follow` reads the logs.",
)
TRACE_SPANS = declare_threshold(
    200, "traces.spans", "count", "Maximum number of spans in a request to a collector."
)
TRACE_WAITING_SPANS = declare_threshold(
    20_000,
    "traces.waiting_spans",
    "count",
    "Maximum number of spans that wait while a collector does not answer. The oldest are dropped.",
)
TRACE_HOURS = declare_threshold(
    24.0, "traces.hours", "hours", "Period whose spans `rekindle traces` sends."
)
METRICS_SECONDS = declare_threshold(
    15.0, "metrics.seconds", "seconds", "Interval at which the daemon sends metrics to a collector."
)
