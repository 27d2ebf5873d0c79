"""Thresholds for fleets: the engine, its hosts and the data that they exchange."""

from rekindle.thresholds import declare_threshold

CONNECT_SECONDS = declare_threshold(
    10.0, "fleet.connect_seconds", "seconds", "Timeout for the first connection to the engine."
)
CONNECT_AGAIN_SECONDS = declare_threshold(
    2.0,
    "fleet.connect_again_seconds",
    "seconds",
    "Interval at which a host retries the connection to an engine that is down.",
)
FLEET_INBOX_SECONDS = declare_threshold(
    5.0,
    "fleet.inbox_seconds",
    "seconds",
    "Interval at which a host looks for hook reports that may not wait for `fleet.fold_seconds`.",
)
FLEET_REPORTS_HELD = declare_threshold(
    500,
    "fleet.reports_held",
    "count",
    "Maximum number of hook reports that wait on a host. It reads all of them at each look.",
)
FLEET_SPENDING_SHARE = declare_threshold(
    0.05,
    "fleet.spending_share",
    "share",
    "Increase in a run's cost or tokens that a host records immediately, as a share of the limit.",
)
FLEET_EVENTS_KEPT = declare_threshold(
    60, "fleet.events_kept", "count", "Number of log lines that the engine keeps for each agent."
)
FLEET_TAIL_BYTES = declare_threshold(
    64 * 1024,
    "fleet.tail_bytes",
    "bytes",
    "Maximum total size of the log lines that the engine keeps for each agent.",
)
FLEET_PROMPT_CHARACTERS = declare_threshold(
    2_000,
    "fleet.prompt_characters",
    "characters",
    "Maximum length of a prompt that the engine stores. The transcript has the full text.",
)
FLEET_REASONS_BYTES = declare_threshold(
    128 * 1024,
    "fleet.reasons_bytes",
    "bytes",
    "Maximum total size of the events with long failure reasons in a pipeline run's log. In older "
    "events, the reason is cut.",
)
FLEET_REASON_CHARACTERS = declare_threshold(
    150, "fleet.reason_characters", "characters", "Maximum length of a failure reason that is cut."
)
FLEET_LONG_EVENT_CHARACTERS = declare_threshold(
    600,
    "fleet.long_event_characters",
    "characters",
    "Minimum length of an event whose failure reason can be cut.",
)
FLEET_COMMIT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.commit_bytes",
    "bytes",
    "Maximum size of a single event, and of all events in one commit. Larger commits are split.",
)
FLEET_COMMITS_KEPT = declare_threshold(
    2,
    "fleet.commits_kept",
    "count",
    "Number of recent commits that the engine remembers, to detect duplicates.",
)
FLEET_CURSORS_KEPT = declare_threshold(
    20,
    "fleet.cursors_kept",
    "count",
    "Number of inbox segments for which the engine keeps a cursor.",
)
FLEET_DOCUMENT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.document_bytes",
    "bytes",
    "Maximum size of a document that the engine accepts. The engine limits messages to two "
    "megabytes.",
)
FLEET_HISTORY_EVENTS = declare_threshold(
    1_000,
    "fleet.history_events",
    "count",
    "Number of events after which an agent's workflow continues as a new workflow, so that it "
    "loads quickly.",
)
FLEET_HOST_SECONDS = declare_threshold(
    5.0,
    "fleet.host_seconds",
    "seconds",
    "How long to wait for the host with an agent's workspace to start the agent. After that, any "
    "host may start it.",
)
FLEET_BRIEF_SECONDS = declare_threshold(
    20.0,
    "fleet.brief_seconds",
    "seconds",
    "How long to wait for the host with an agent's workspace to start a brief. The time is long "
    "because many briefs may be due in the same hour.",
)
FLEET_BRIEF_AGENT_SECONDS = declare_threshold(
    5.0,
    "fleet.brief_agent_seconds",
    "seconds",
    "Time by which each agent of a fleet extends the period over which its briefs are spread.",
)
FLEET_BRIEF_WINDOW_SECONDS = declare_threshold(
    4 * 3600.0,
    "fleet.brief_window_seconds",
    "seconds",
    "Longest period over which a fleet spreads briefs that are due at the same time of day.",
)
FLEET_SIZE_SECONDS = declare_threshold(
    3600.0,
    "fleet.size_seconds",
    "seconds",
    "Interval at which a host counts all agents of a fleet, to spread their briefs.",
)
FLEET_BRIEF_WAIT_SECONDS = declare_threshold(
    300.0,
    "fleet.brief_wait_seconds",
    "seconds",
    "Maximum time that `brief` waits for a host to write the brief.",
)
FLEET_OFFER_SECONDS = declare_threshold(
    1.0,
    "fleet.offer_seconds",
    "seconds",
    "How long to wait for a host to offer a slot. After that, the fleet asks another host.",
)
FLEET_OFFERS = declare_threshold(
    6,
    "fleet.offers",
    "count",
    "Maximum number of times to ask a pool for a host on which the agent has not failed yet.",
)
FLEET_SLOT_SECONDS = declare_threshold(
    20.0,
    "fleet.slot_seconds",
    "seconds",
    "Interval at which the fleet offers work again to a host that is full.",
)
FLEET_QUEUED_SECONDS = declare_threshold(
    1,
    "fleet.queued_seconds",
    "seconds",
    "Pause before a fleet retries an agent that is still running on its previous host.",
)
FLEET_TASK_SECONDS = declare_threshold(
    2.0,
    "fleet.task_seconds",
    "seconds",
    "How long to wait for a worker to decide the next step. After that, the fleet asks another "
    "worker.",
)
FLEET_WORD_SECONDS = declare_threshold(
    10.0,
    "fleet.word_seconds",
    "seconds",
    "Timeout for sending a command to a host. After that, the host gets the command with its next "
    "commit.",
)
FLEET_RPC_SECONDS = declare_threshold(
    10.0,
    "fleet.rpc_seconds",
    "seconds",
    "Timeout for a call to the engine. After that, the call is retried.",
)
FLEET_TRIES = declare_threshold(
    5,
    "fleet.tries",
    "count",
    "Maximum number of attempts to deliver a command while an agent's workflow is starting or "
    "ending.",
)
FLEET_READY_SECONDS = declare_threshold(
    1.0,
    "fleet.ready_seconds",
    "seconds",
    "How long to wait before a command is sent again to an agent whose worker has just failed.",
)
FLEET_ADMISSION_AGENTS = declare_threshold(
    200,
    "fleet.admission_agents",
    "count",
    "Maximum number of agents that a host checks for unencrypted data before it accepts work.",
)
FLEET_ANSWER_SECONDS = declare_threshold(
    5.0,
    "fleet.answer_seconds",
    "seconds",
    "Timeout for reading an agent's state. After that, the command reports that no worker is "
    "running.",
)
FLEET_GLANCE_SECONDS = declare_threshold(
    2, "fleet.glance_seconds", "seconds", "Timeout for reading the engine's list of hosts."
)
FLEET_STATUS_AGENTS = declare_threshold(
    20,
    "fleet.status_agents",
    "count",
    "Maximum number of agents on a fleet for which `status` queries each agent's details.",
)
FLEET_BEAT_SHARE = declare_threshold(
    0.4,
    "fleet.beat_share",
    "share",
    "Interval between a host's heartbeats, as a share of `fleet.heartbeat_timeout`.",
)
FLEET_SHORTEST_HEARTBEAT_SECONDS = declare_threshold(
    2,
    "fleet.shortest_heartbeat_seconds",
    "seconds",
    "Minimum value of `fleet.heartbeat_timeout`. A busy host's heartbeat may be a second late.",
)
FLEET_THROTTLE_SECONDS = declare_threshold(
    0.1,
    "fleet.throttle_seconds",
    "seconds",
    "Maximum delay that the engine's client adds to a heartbeat.",
)
FLEET_STICKY_SECONDS = declare_threshold(
    1.0,
    "fleet.sticky_seconds",
    "seconds",
    "Maximum time that a decision waits for the worker that made the previous one.",
)
FLEET_LEAVE_SECONDS = declare_threshold(
    30.0,
    "fleet.leave_seconds",
    "seconds",
    "How long a worker that is shutting down may take to give back its agents.",
)
FLEET_SIGNAL_SECONDS = declare_threshold(
    0.2,
    "fleet.signal_seconds",
    "seconds",
    "Pause between two identical signals, so that the receiver does not miss one.",
)
FLEET_NICE = declare_threshold(
    10,
    "fleet.nice",
    "count",
    "Niceness added to an agent, so that it has a lower priority than its worker.",
)
FLEET_LEASE_DAYS = declare_threshold(
    365,
    "fleet.lease_days",
    "days",
    "Maximum duration of one cycle. A lost host is detected much earlier.",
)
FLEET_POLLER_SECONDS = declare_threshold(
    75,
    "fleet.poller_seconds",
    "seconds",
    "Time without a request for work after which a host is considered gone. A running host asks "
    "every minute.",
)
FLEET_ACTIVITY_POLLS = declare_threshold(
    2,
    "fleet.activity_polls",
    "count",
    "Number of requests for work that a host keeps open at the same time.",
)
FLEET_DECISION_POLLS = declare_threshold(
    4,
    "fleet.decision_polls",
    "count",
    "Number of decision requests that a worker keeps open. After a host is lost, all of its "
    "agents need a decision at the same time.",
)
FLEET_BESIDE = declare_threshold(
    16,
    "fleet.beside",
    "count",
    "Maximum number of commands and briefs that a host handles at the same time, in addition to "
    "its cycles.",
)
FLEET_OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "fleet.output_bytes",
    "bytes",
    "Maximum size of a cycle's output file on a host. A larger file is emptied.",
)
FLEET_OFFER_RETRY_SECONDS = declare_threshold(
    0.1,
    "fleet.offer_retry_seconds",
    "seconds",
    "Pause before the fleet asks a pool for a host again.",
)
FLEET_NOTIFY_SECONDS = declare_threshold(
    120.0, "fleet.notify_seconds", "seconds", "How long a host may take to send a notification."
)
FLEET_NOTIFY_WAIT_SECONDS = declare_threshold(
    600.0,
    "fleet.notify_wait_seconds",
    "seconds",
    "Time after which the fleet drops a notification that no host has sent.",
)
FLEET_SLOTS = declare_threshold(
    4, "fleet.slots", "count", "Default number of agents that a worker runs at the same time."
)
FLEET_PROBE_WAIT_SHARE = declare_threshold(
    0.25,
    "fleet.probe_wait_share",
    "share",
    "Timeout for the engine's answer to a host's check, as a share of `fleet.heartbeat_timeout`.",
)
FLEET_LOOK_SHARE = declare_threshold(
    0.1,
    "fleet.look_share",
    "share",
    "Interval at which a host checks on a cycle, as a share of `fleet.heartbeat_timeout`.",
)
FLEET_ASK_AGAIN_SECONDS = declare_threshold(
    0.25,
    "fleet.ask_again_seconds",
    "seconds",
    "Pause before a host repeats a failed call to the engine.",
)
FLEET_WORD_TRIES = declare_threshold(
    3,
    "fleet.word_tries",
    "count",
    "Multiple of `fleet.word_seconds` after which a command to a host is abandoned.",
)
FLEET_PIPELINE_SECONDS = declare_threshold(
    1800.0,
    "fleet.pipeline_seconds",
    "seconds",
    "How long a host may take for one task of a pipeline, such as a merge. A host that stops "
    "sending heartbeats is detected much earlier.",
)
FLEET_PIPELINE_RETRY_SECONDS = declare_threshold(
    60.0,
    "fleet.pipeline_retry_seconds",
    "seconds",
    "Longest pause before a fleet repeats a task of a pipeline that failed on a host.",
)
FLEET_PIPELINE_FAILURES = declare_threshold(
    2,
    "fleet.pipeline_failures",
    "count",
    "Number of failures of a pipeline's task after which `pipeline status` shows its error.",
)
FLEET_PIPELINE_TASKS = declare_threshold(
    2,
    "fleet.pipeline_tasks",
    "count",
    "Number of tasks of pipelines that a host does at the same time, in addition to its cycles.",
)
FLEET_CLEAN_SECONDS = declare_threshold(
    600.0,
    "fleet.clean_seconds",
    "seconds",
    "Interval at which a host looks for folders of pipeline workers that are not on the fleet "
    "anymore.",
)
FLEET_GAUGE_SECONDS = declare_threshold(
    5.0, "fleet.gauge_seconds", "seconds", "Interval at which a host updates its gauges."
)
FLEET_COUNT_SECONDS = declare_threshold(
    60.0,
    "fleet.count_seconds",
    "seconds",
    "Interval at which a host counts the fleet's agents by state, if it exports metrics.",
)
FLEET_MERGE_POLL_SECONDS = declare_threshold(
    30.0,
    "fleet.merge_poll_seconds",
    "seconds",
    "Interval at which a fleet looks for a merge that a person was asked to make.",
)
FLEET_HISTORY_READS = declare_threshold(
    16,
    "fleet.history_reads",
    "count",
    "Number of histories that `fleet keys` reads at the same time.",
)
FLEET_REFRESH_SECONDS = declare_threshold(
    10.0,
    "fleet.refresh_seconds",
    "seconds",
    "How long `fleet keys --rotate` and `fleet deploy` wait for idle agents.",
)
FLEET_REFRESH_POLL_SECONDS = declare_threshold(
    0.5,
    "fleet.refresh_poll_seconds",
    "seconds",
    "Interval at which `fleet keys --rotate` and `fleet deploy` check which agents remain.",
)
