"""Thresholds for pipeline runs."""

from rekindle.thresholds import declare_threshold

PIPELINE_CONCURRENCY = declare_threshold(
    4,
    "pipeline.concurrency",
    "count",
    "Number of a step's workers at the same time if the matrix has no `max_concurrency`.",
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
    "Time to check a file against a JSON Schema. A pattern can take forever on some texts.",
)
MATRIX_ITEMS = declare_threshold(
    256, "pipeline.matrix_items", "count", "Maximum number of items of a matrix step."
)
MATRIX_BYTES = declare_threshold(
    1_000_000, "pipeline.matrix_bytes", "bytes", "Maximum size of a list of items."
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
    "Maximum length of the reason of a failure in the prompt of the next attempt.",
)
CHECKS_AT_ONCE = declare_threshold(
    4,
    "pipeline.checks_at_once",
    "count",
    "Number of workers whose results the coordinator of a run checks at the same time.",
)
CONTRACT_SECONDS = declare_threshold(
    3600,
    "pipeline.contract_seconds",
    "seconds",
    "Time after which the coordinator ends the command of a `test_suite` contract.",
)
COORDINATOR_POLL_SECONDS = declare_threshold(
    0.2,
    "pipeline.poll_seconds",
    "seconds",
    "Time between two looks at the workers of a run.",
)
COORDINATOR_RETRY_SECONDS = declare_threshold(
    2.0,
    "pipeline.retry_seconds",
    "seconds",
    "Time before the coordinator tries again what was impossible, such as on a full disk.",
)
COORDINATOR_WATCH_SECONDS = declare_threshold(
    5.0,
    "pipeline.watch_seconds",
    "seconds",
    "Time between two checks whether a worker's supervisor is missing.",
)
SPENDING_STEP_USD = declare_threshold(
    0.05,
    "pipeline.spending_step",
    "dollars",
    "Cost after which the coordinator records the spending of a running worker.",
)
STEP_OUTPUT_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "pipeline.output_bytes",
    "bytes",
    "Maximum size of an output of a step.",
)
LEAST_REST = declare_threshold(
    0.01,
    "pipeline.least_rest",
    "count",
    "Least rest of a run's budget, in dollars or hours, for a worker that begins: a cap cannot be "
    "zero.",
)
