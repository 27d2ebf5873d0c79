"""Thresholds for pipeline runs."""

from rekindle.thresholds import declare_threshold

PIPELINE_CONCURRENCY = declare_threshold(
    4,
    "pipeline.concurrency",
    "count",
    "Maximum number of a step's workers that run at the same time, if the matrix does not set "
    "`max_concurrency`.",
)
CONTRACT_BYTES = declare_threshold(
    1_000_000,
    "pipeline.contract_bytes",
    "bytes",
    "Maximum size of a file that is checked against a JSON Schema, and of the schema.",
)
SCHEMA_PROBLEMS = declare_threshold(
    5,
    "pipeline.schema_problems",
    "count",
    "Number of differences from a JSON Schema to report.",
)
SCHEMA_VALUE_CHARACTERS = declare_threshold(
    120,
    "pipeline.schema_value_characters",
    "characters",
    "Maximum length of a value in a report about a JSON Schema.",
)
SCHEMA_SECONDS = declare_threshold(
    30.0,
    "pipeline.schema_seconds",
    "seconds",
    "Timeout for checking a file against a JSON Schema, because some patterns never finish on "
    "some text.",
)
MATRIX_ITEMS = declare_threshold(
    256, "pipeline.matrix_items", "count", "Maximum number of items in a matrix."
)
MATRIX_BYTES = declare_threshold(
    1_000_000, "pipeline.matrix_bytes", "bytes", "Maximum size of a matrix's list of items."
)
WORKER_KEY_CHARACTERS = declare_threshold(
    40,
    "pipeline.key_characters",
    "characters",
    "Maximum length of a worker's key. A longer key is cut.",
)
RETRY_REASON_CHARACTERS = declare_threshold(
    4_000,
    "pipeline.reason_characters",
    "characters",
    "Maximum length of the failure reason in the next attempt's prompt.",
)
PUSH_ATTEMPTS = declare_threshold(
    3,
    "pipeline.push_attempts",
    "count",
    "Number of attempts in a row whose work could not be pushed before the last one counts as "
    "failed.",
)
CHECKS_AT_ONCE = declare_threshold(
    4,
    "pipeline.checks_at_once",
    "count",
    "Number of workers' results that a run's coordinator checks at the same time.",
)
CONTRACT_SECONDS = declare_threshold(
    3600,
    "pipeline.contract_seconds",
    "seconds",
    "Timeout for the command in a `test_suite` contract.",
)
COORDINATOR_POLL_SECONDS = declare_threshold(
    0.2,
    "pipeline.poll_seconds",
    "seconds",
    "Interval at which the coordinator checks a run's workers.",
)
COORDINATOR_RETRY_SECONDS = declare_threshold(
    2.0,
    "pipeline.retry_seconds",
    "seconds",
    "Time before the coordinator retries a failed operation, for example after the disk was full.",
)
COORDINATOR_WATCH_SECONDS = declare_threshold(
    5.0,
    "pipeline.watch_seconds",
    "seconds",
    "Interval at which the coordinator checks for missing supervisors.",
)
SPENDING_STEP_USD = declare_threshold(
    0.05,
    "pipeline.spending_step",
    "dollars",
    "Minimum increase in a running worker's cost that the coordinator records.",
)
STEP_OUTPUT_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "pipeline.output_bytes",
    "bytes",
    "Maximum size of a step's output.",
)
LEAST_REST = declare_threshold(
    0.01,
    "pipeline.least_rest",
    "count",
    "Minimum budget for a new worker, in dollars or hours, because a limit cannot be zero.",
)
