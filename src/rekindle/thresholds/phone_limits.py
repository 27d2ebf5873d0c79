"""Thresholds for the bridge between agents and a phone."""

from rekindle.thresholds import declare_threshold

PHONE_CHARACTERS = declare_threshold(
    700, "phone.characters", "characters", "Maximum length of a message to a phone."
)
PHONE_CODE_BYTES = declare_threshold(
    12, "phone.code_bytes", "bytes", "Random bytes in the code of a question on a phone."
)
PHONE_PAIRING_BYTES = declare_threshold(
    10, "phone.pairing_bytes", "bytes", "Random bytes in the code that pairs a chat."
)
PHONE_PAIRING_SECONDS = declare_threshold(
    600.0, "phone.pairing_seconds", "seconds", "How long a code can pair a chat, once."
)
PHONE_PAIRING_ERRORS = declare_threshold(
    5, "phone.pairing_errors", "count", "Number of wrong codes after which a pairing is cancelled."
)
PHONE_AGE_SECONDS = declare_threshold(
    300.0,
    "phone.age_seconds",
    "seconds",
    "Age at which a command from a phone is not run anymore, because the bridge was not running.",
)
PHONE_CHECK_SECONDS = declare_threshold(
    1.0, "phone.check_seconds", "seconds", "Interval at which the bridge looks for questions."
)
PHONE_FLEET_SECONDS = declare_threshold(
    10.0,
    "phone.fleet_seconds",
    "seconds",
    "Interval at which the bridge looks for questions of agents on a fleet.",
)
PHONE_POLL_SECONDS = declare_threshold(
    25, "phone.poll_seconds", "seconds", "How long the bridge waits for a service to send an input."
)
PHONE_CALL_SECONDS = declare_threshold(
    20.0, "phone.call_seconds", "seconds", "Timeout for a call to a service."
)
PHONE_RETRY_SECONDS = declare_threshold(
    2.0, "phone.retry_seconds", "seconds", "Wait after the first failed call to a service."
)
PHONE_RETRY_MOST_SECONDS = declare_threshold(
    120.0, "phone.retry_most_seconds", "seconds", "Longest wait after failed calls to a service."
)
PHONE_ANSWER_BYTES = declare_threshold(
    4 * 1024 * 1024, "phone.answer_bytes", "bytes", "Maximum size of a service's answer."
)
PHONE_FORGOTTEN_SECONDS = declare_threshold(
    20 * 3600.0,
    "phone.forgotten_seconds",
    "seconds",
    "Silence after which the bridge sends open questions again. Telegram keeps presses for a day.",
)
PHONE_CLOSED_KEPT = declare_threshold(
    200, "phone.closed_kept", "count", "Number of closed questions whose buttons are recognized."
)
PHONE_MESSAGES = declare_threshold(
    10, "phone.messages", "count", "Maximum number of messages in reply to one command."
)
