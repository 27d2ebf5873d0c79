"""Thresholds for fleets: the engine, its hosts and the data between them."""

from rekindle.thresholds import declare_threshold

CONNECT_SECONDS = declare_threshold(
    10.0, "fleet.connect_seconds", "seconds", "Timeout for the first connection to the engine."
)
CONNECT_AGAIN_SECONDS = declare_threshold(
    2.0,
    "fleet.connect_again_seconds",
    "seconds",
    "Interval at which a host tries to reach an engine that is down.",
)
FLEET_FOLD_SECONDS = declare_threshold(
    30.0,
    "fleet.fold_seconds",
    "seconds",
    "Minimum interval at which a host folds hook reports; each fold costs a call to the engine.",
)
FLEET_EVENTS_KEPT = declare_threshold(
    60, "fleet.events_kept", "count", "Number of lines of an agent's log that the engine keeps."
)
FLEET_TAIL_BYTES = declare_threshold(
    64 * 1024,
    "fleet.tail_bytes",
    "bytes",
    "Maximum total size of the lines of an agent's log that the engine keeps.",
)
FLEET_PROMPT_CHARACTERS = declare_threshold(
    2_000,
    "fleet.prompt_characters",
    "characters",
    "Maximum length of a prompt in the engine; the transcript has the full text.",
)
FLEET_COMMIT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.commit_bytes",
    "bytes",
    "Maximum size of the events in one commit, and of a single event; larger commits are split.",
)
FLEET_COMMITS_KEPT = declare_threshold(
    2,
    "fleet.commits_kept",
    "count",
    "Number of recent commits that the engine recognizes if a host sends them again.",
)
FLEET_CURSORS_KEPT = declare_threshold(
    20, "fleet.cursors_kept", "count", "Number of inbox segments whose cursor the engine keeps."
)
FLEET_DOCUMENT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.document_bytes",
    "bytes",
    "Maximum size of a document that the engine accepts; its messages are limited to two"
    " megabytes.",
)
FLEET_HISTORY_EVENTS = declare_threshold(
    1_000,
    "fleet.history_events",
    "count",
    "Number of events after which an agent's workflow continues as a new one, so that it loads"
    " quickly.",
)
FLEET_HOST_SECONDS = declare_threshold(
    5.0,
    "fleet.host_seconds",
    "seconds",
    "Timeout for the host that has an agent's workspace to start the agent; then another host may "
    "start it.",
)
FLEET_BRIEF_SECONDS = declare_threshold(
    20.0,
    "fleet.brief_seconds",
    "seconds",
    "Timeout for the host that has an agent's workspace to start a brief; it is long, because all "
    "briefs may be due in the same hour.",
)
FLEET_BRIEF_SPREAD_SECONDS = declare_threshold(
    300.0,
    "fleet.brief_spread_seconds",
    "seconds",
    "Time over which a fleet spreads briefs that are due at the same time of day.",
)
FLEET_BRIEF_WAIT_SECONDS = declare_threshold(
    300.0,
    "fleet.brief_wait_seconds",
    "seconds",
    "Maximum time that `brief` waits for a host to write the brief.",
)
FLEET_BRIEF_CATCH_UP_DAYS = declare_threshold(
    1,
    "fleet.brief_catch_up_days",
    "days",
    "Maximum age of a missed brief that a host still writes after the engine was down.",
)
FLEET_OFFER_SECONDS = declare_threshold(
    1.0,
    "fleet.offer_seconds",
    "seconds",
    "Timeout for a host to offer a slot; after it, another host is asked.",
)
FLEET_OFFERS = declare_threshold(
    6,
    "fleet.offers",
    "count",
    "Maximum number of times the pool is asked for a host on which the agent has not failed.",
)
FLEET_SLOT_SECONDS = declare_threshold(
    20.0,
    "fleet.slot_seconds",
    "seconds",
    "Interval at which work for a particular host is offered again while that host is full.",
)
FLEET_QUEUED_SECONDS = declare_threshold(
    1,
    "fleet.queued_seconds",
    "seconds",
    "Pause before a fleet retries an agent that its previous host still holds.",
)
FLEET_TASK_SECONDS = declare_threshold(
    2.0,
    "fleet.task_seconds",
    "seconds",
    "Timeout for a worker to decide the next step; after it, another worker is asked.",
)
FLEET_WORD_SECONDS = declare_threshold(
    10.0,
    "fleet.word_seconds",
    "seconds",
    "Timeout for sending a command to a host. If it expires, the host receives the command with its"
    " next commit.",
)
FLEET_RPC_SECONDS = declare_threshold(
    10.0,
    "fleet.rpc_seconds",
    "seconds",
    "Timeout of a call to the engine; the call is then retried.",
)
FLEET_TRIES = declare_threshold(
    5,
    "fleet.tries",
    "count",
    "Maximum number of attempts to deliver a command while an agent's workflow is starting or "
    "ending.",
)
FLEET_ADMISSION_AGENTS = declare_threshold(
    200,
    "fleet.admission_agents",
    "count",
    "Maximum number of agents that a host checks for plain text before it accepts any of them.",
)
FLEET_ANSWER_SECONDS = declare_threshold(
    5.0,
    "fleet.answer_seconds",
    "seconds",
    "Timeout for reading an agent's state; after it, a command reports that no worker is running.",
)
FLEET_GLANCE_SECONDS = declare_threshold(
    2, "fleet.glance_seconds", "seconds", "Timeout for reading the engine's list of hosts."
)
FLEET_STATUS_AGENTS = declare_threshold(
    20,
    "fleet.status_agents",
    "count",
    "Maximum number of agents for which `status` queries more than the engine's list.",
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
    "Minimum value of `fleet.heartbeat_timeout`; a busy host is sometimes a second late.",
)
FLEET_THROTTLE_SECONDS = declare_threshold(
    0.1,
    "fleet.throttle_seconds",
    "seconds",
    "Maximum time for which the engine's client delays a heartbeat.",
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
    "Timeout for a worker that is shutting down to give back its agents.",
)
FLEET_SIGNAL_SECONDS = declare_threshold(
    0.2,
    "fleet.signal_seconds",
    "seconds",
    "Pause between two signals of the same kind, so that the receiver sees both.",
)
FLEET_NICE = declare_threshold(
    10,
    "fleet.nice",
    "count",
    "Number of niceness steps by which an agent's priority is below that of its worker.",
)
FLEET_LEASE_DAYS = declare_threshold(
    365,
    "fleet.lease_days",
    "days",
    "Maximum duration of one cycle; the loss of its host is detected much earlier.",
)
FLEET_POLLER_SECONDS = declare_threshold(
    75,
    "fleet.poller_seconds",
    "seconds",
    "Time since its last request for work after which a host counts as gone; a running host asks "
    "every minute.",
)
FLEET_ACTIVITY_POLLS = declare_threshold(
    2,
    "fleet.activity_polls",
    "count",
    "Number of requests for work that a host keeps open at once.",
)
FLEET_DECISION_POLLS = declare_threshold(
    4,
    "fleet.decision_polls",
    "count",
    "Number of requests for decisions that a worker keeps open; all agents of a lost host ask at"
    " once.",
)
FLEET_BESIDE = declare_threshold(
    16,
    "fleet.beside",
    "count",
    "Maximum number of commands and briefs that a host handles at once, in addition to its cycles.",
)
FLEET_OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "fleet.output_bytes",
    "bytes",
    "Maximum size of the output file of a cycle on a host; beyond it, the file starts from empty.",
)
FLEET_OFFER_RETRY_SECONDS = declare_threshold(
    0.1, "fleet.offer_retry_seconds", "seconds", "Pause before a pool is asked for a host again."
)
FLEET_NOTIFY_SECONDS = declare_threshold(
    120.0, "fleet.notify_seconds", "seconds", "Timeout for a host to send a notification."
)
FLEET_NOTIFY_WAIT_SECONDS = declare_threshold(
    600.0,
    "fleet.notify_wait_seconds",
    "seconds",
    "Time after which a notification that no host has sent is dropped.",
)
FLEET_SLOTS = declare_threshold(
    4, "fleet.slots", "count", "Number of agents that a worker without `--slots` runs at once."
)
FLEET_PROBE_SHARE = declare_threshold(
    0.125,
    "fleet.probe_share",
    "share",
    "Interval at which a host checks whether the engine is reachable, as a share of"
    " `fleet.heartbeat_timeout`.",
)
FLEET_PROBE_WAIT_SHARE = declare_threshold(
    0.25,
    "fleet.probe_wait_share",
    "share",
    "Timeout for the engine to answer a host's check, as a share of `fleet.heartbeat_timeout`.",
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
