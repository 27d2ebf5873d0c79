"""Weights of the features in `pair_features`, written by `tools/fit_stalls.py`.

A positive weight speaks for a stuck loop, a negative one for progress.
"""

WEIGHTS = {
    "bias": -1.74,
    "same_head": 0.91,
    "same_body": 0.39,
    "is_equal": 1.25,
    "new_name": -1.36,
    "reported": -1.00,
    "shorter": -1.80,
    "gone": -0.34,
    "ticked": -0.75,
    "newly_done": 0.11,
    "new_lines": 0.05,
    "done_lines": -1.19,
    "recounted": 0.97,
    "more": 0.83,
    "more_again": 1.65,
    "endless": 2.29,
    "waits_first": 1.73,
    "waits": 1.33,
    "holds": 0.86,
    "needs_person": 1.04,
    "finished": 2.89,
}
