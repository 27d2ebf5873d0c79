"""Weights of the features in `pair_features`, written by `tools/fit_stalls.py`.

A positive weight speaks for a stuck loop, a negative one for progress.
"""

WEIGHTS = {
    "bias": -1.63,
    "same_head": 0.94,
    "same_body": 0.28,
    "is_equal": 1.26,
    "new_name": -1.37,
    "reported": -1.03,
    "shorter": -1.77,
    "gone": -0.33,
    "ticked": -0.76,
    "newly_done": -0.01,
    "new_lines": 0.00,
    "done_lines": -1.17,
    "recounted": 0.95,
    "more": 0.79,
    "more_again": 1.66,
    "endless": 2.26,
    "waits_first": 1.71,
    "waits": 1.22,
    "holds": 0.94,
    "needs_person": 0.95,
    "finished": 2.75,
}
