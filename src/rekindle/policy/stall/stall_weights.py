"""Weights of the features in `pair_features`, written by `tools/fit_stalls.py`.

A positive weight speaks for a stuck loop, a negative one for progress.
"""

WEIGHTS = {
    "bias": -1.69,
    "same_head": 0.91,
    "same_body": 0.38,
    "is_equal": 1.24,
    "new_name": -1.38,
    "reported": -1.00,
    "shorter": -1.79,
    "gone": -0.34,
    "ticked": -0.71,
    "done_lines": -1.15,
    "recounted": 0.94,
    "more": 0.81,
    "more_again": 1.65,
    "endless": 2.27,
    "waits_first": 1.72,
    "waits": 1.34,
    "holds": 0.86,
    "needs_person": 1.03,
    "finished": 2.87,
}
