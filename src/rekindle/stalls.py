"""Find out whether an agent made progress between two relays, without a project folder.

from rekindle import stalls

for stretch in stalls.find_stretches(stalls.replay(texts)):
print(stretch.first, stretch.last, stretch.about)
"""

from rekindle.policy.stall.relay_comparison import compare_relays as verdict
from rekindle.policy.stall.stretches import StuckStretch, find_stretches
from rekindle.policy.stall.stretches import judge_pairs as replay
from rekindle.policy.stall.verdict import StallKind, StallVerdict

__all__ = ["StallKind", "StallVerdict", "StuckStretch", "find_stretches", "replay", "verdict"]
