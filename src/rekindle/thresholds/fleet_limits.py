"""Thresholds of a fleet: the engine, its hosts and the data between them."""

from rekindle.thresholds import declare_threshold

CONNECT_SECONDS = declare_threshold(
    10.0, "fleet.connect_seconds", "seconds", "Time the engine has to answer a first connection."
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
    "Shortest interval at which a host folds the reports of hooks; each time costs a call.",
)
FLEET_EVENTS_KEPT = declare_threshold(
    60, "fleet.events_kept", "count", "Lines of an agent's log that the engine keeps."
)
FLEET_TAIL_BYTES = declare_threshold(
    64 * 1024,
    "fleet.tail_bytes",
    "bytes",
    "Size of the lines of an agent's log that the engine keeps.",
)
FLEET_PROMPT_CHARACTERS = declare_threshold(
    2_000,
    "fleet.prompt_characters",
    "characters",
    "Part of a prompt that the engine keeps; the transcript has all of it.",
)
FLEET_COMMIT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.commit_bytes",
    "bytes",
    "Events that a host commits at once, and the longest of them; more is sent in pieces.",
)
FLEET_COMMITS_KEPT = declare_threshold(
    2,
    "fleet.commits_kept",
    "count",
    "Latest commits that the engine recognizes if a host sends them again.",
)
FLEET_CURSORS_KEPT = declare_threshold(
    20, "fleet.cursors_kept", "count", "Inbox segments whose cursor the engine keeps."
)
FLEET_DOCUMENT_BYTES = declare_threshold(
    256 * 1024,
    "fleet.document_bytes",
    "bytes",
    "Largest document that the engine accepts; its messages have a limit of two megabytes.",
)
FLEET_HISTORY_EVENTS = declare_threshold(
    1_000,
    "fleet.history_events",
    "count",
    "Events after which an agent's workflow continues as a new one, quick to load.",
)
FLEET_HOST_SECONDS = declare_threshold(
    5.0,
    "fleet.host_seconds",
    "seconds",
    "Time the host with an agent's workspace has to begin before another host does.",
)
FLEET_BRIEF_SECONDS = declare_threshold(
    20.0,
    "fleet.brief_seconds",
    "seconds",
    "Time that host has to begin a brief; all agents may want one in the same hour.",
)
FLEET_BRIEF_SPREAD_SECONDS = declare_threshold(
    300.0,
    "fleet.brief_spread_seconds",
    "seconds",
    "Time over which the briefs of one time of day are spread.",
)
FLEET_BRIEF_WAIT_SECONDS = declare_threshold(
    300.0, "fleet.brief_wait_seconds", "seconds", "Time `brief` waits for a host to write it."
)
FLEET_BRIEF_CATCH_UP_DAYS = declare_threshold(
    1,
    "fleet.brief_catch_up_days",
    "days",
    "Age up to which a missed brief is written after the engine was down.",
)
FLEET_OFFER_SECONDS = declare_threshold(
    1.0,
    "fleet.offer_seconds",
    "seconds",
    "Time a host has to offer a slot before another is asked.",
)
FLEET_OFFERS = declare_threshold(
    6,
    "fleet.offers",
    "count",
    "Requests to the pool for a host other than those where the agent failed.",
)
FLEET_SLOT_SECONDS = declare_threshold(
    20.0,
    "fleet.slot_seconds",
    "seconds",
    "Time that work for one full host waits before it asks again.",
)
FLEET_QUEUED_SECONDS = declare_threshold(
    1, "fleet.queued_seconds", "seconds", "Pause of an agent that its former host still holds."
)
FLEET_TASK_SECONDS = declare_threshold(
    2.0,
    "fleet.task_seconds",
    "seconds",
    "Time a worker has to decide the next step before another is asked.",
)
FLEET_WORD_SECONDS = declare_threshold(
    10.0,
    "fleet.word_seconds",
    "seconds",
    "Time a host has to receive a command; otherwise it receives it at its next commit.",
)
FLEET_RPC_SECONDS = declare_threshold(
    10.0,
    "fleet.rpc_seconds",
    "seconds",
    "Timeout of a call to the engine; it is then tried again.",
)
FLEET_TRIES = declare_threshold(
    5, "fleet.tries", "count", "Attempts of a command while an agent's workflow ends or begins."
)
FLEET_ADMISSION_AGENTS = declare_threshold(
    200,
    "fleet.admission_agents",
    "count",
    "Agents that a host which refuses plain text checks before it takes any.",
)
FLEET_ANSWER_SECONDS = declare_threshold(
    5.0,
    "fleet.answer_seconds",
    "seconds",
    "Time a command waits for an agent's state before it reports that no worker is running.",
)
FLEET_GLANCE_SECONDS = declare_threshold(
    2, "fleet.glance_seconds", "seconds", "Time a command waits for the engine's list of hosts."
)
FLEET_STATUS_AGENTS = declare_threshold(
    20,
    "fleet.status_agents",
    "count",
    "Agents above which `status` shows only the data in the engine's list.",
)
FLEET_BEAT_SHARE = declare_threshold(
    0.4,
    "fleet.beat_share",
    "share",
    "Interval of a host's heartbeat, as a share of `fleet.heartbeat_timeout`.",
)
FLEET_SHORTEST_HEARTBEAT_SECONDS = declare_threshold(
    2,
    "fleet.shortest_heartbeat_seconds",
    "seconds",
    "Shortest `fleet.heartbeat_timeout`; a busy host is sometimes a second late.",
)
FLEET_THROTTLE_SECONDS = declare_threshold(
    0.1,
    "fleet.throttle_seconds",
    "seconds",
    "Longest time for which the engine's client holds a heartbeat back.",
)
FLEET_STICKY_SECONDS = declare_threshold(
    1.0,
    "fleet.sticky_seconds",
    "seconds",
    "Time that a decision waits for the worker that decided last.",
)
FLEET_LEAVE_SECONDS = declare_threshold(
    30.0,
    "fleet.leave_seconds",
    "seconds",
    "Time a worker that shuts down has to give back its agents.",
)
FLEET_SIGNAL_SECONDS = declare_threshold(
    0.2,
    "fleet.signal_seconds",
    "seconds",
    "Pause between two signals of one kind, so that both arrive.",
)
FLEET_NICE = declare_threshold(
    10,
    "fleet.nice",
    "count",
    "Steps by which an agent on a host has a lower priority than its worker.",
)
FLEET_LEASE_DAYS = declare_threshold(
    365,
    "fleet.lease_days",
    "days",
    "Longest time of one cycle; the loss of its host is detected much earlier.",
)
FLEET_POLLER_SECONDS = declare_threshold(
    75,
    "fleet.poller_seconds",
    "seconds",
    "Age of a host's last request for work at which it is gone; a live one asks every minute.",
)
FLEET_ACTIVITY_POLLS = declare_threshold(
    2, "fleet.activity_polls", "count", "Requests for work that a host has open at once."
)
FLEET_DECISION_POLLS = declare_threshold(
    4,
    "fleet.decision_polls",
    "count",
    "Open requests for decisions of a worker; all agents of a lost host ask together.",
)
FLEET_BESIDE = declare_threshold(
    16,
    "fleet.beside",
    "count",
    "Commands and briefs that a host handles at once besides its cycles.",
)
FLEET_OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "fleet.output_bytes",
    "bytes",
    "Size at which the output file of a cycle on a host starts again.",
)
FLEET_OFFER_RETRY_SECONDS = declare_threshold(
    0.1, "fleet.offer_retry_seconds", "seconds", "Pause before a pool is asked for a host again."
)
FLEET_NOTIFY_SECONDS = declare_threshold(
    120.0, "fleet.notify_seconds", "seconds", "Time that a host has to send a notification."
)
FLEET_NOTIFY_WAIT_SECONDS = declare_threshold(
    600.0,
    "fleet.notify_wait_seconds",
    "seconds",
    "Time after which a notification that no host has sent is dropped.",
)
FLEET_SLOTS = declare_threshold(
    4, "fleet.slots", "count", "Agents that a worker without `--slots` runs at once."
)
FLEET_PROBE_SHARE = declare_threshold(
    0.125,
    "fleet.probe_share",
    "share",
    "Interval at which a host asks whether the engine is there, as a share of"
    " `fleet.heartbeat_timeout`.",
)
FLEET_PROBE_WAIT_SHARE = declare_threshold(
    0.25,
    "fleet.probe_wait_share",
    "share",
    "Time the engine has to answer that check, as a share of `fleet.heartbeat_timeout`.",
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
    "Pause before a host repeats a call to the engine that failed.",
)
FLEET_WORD_TRIES = declare_threshold(
    3,
    "fleet.word_tries",
    "count",
    "Multiple of `fleet.word_seconds` after which a command to a host is given up.",
)
