"""The fitted weights fit the features."""

from rekindle.policy.stall.pair_features import RelayPair, read_relay
from rekindle.policy.stall.relay_comparison import measure_stuck
from rekindle.policy.stall.stall_weights import WEIGHTS


def test_each_feature_has_a_weight_and_each_weight_a_feature():
    relay = read_relay("## Next Action\nPort the parser\n")
    assert {"bias", *RelayPair(relay, relay).measure()} == set(WEIGHTS)


def test_waiting_speaks_for_a_stall_and_a_done_item_against_it():
    """The signs of the weights are those that a reader of the table expects."""
    relay = read_relay("## Next Action\nPort the parser\n")
    features = RelayPair(relay, relay).measure()
    usual = measure_stuck(features)
    assert measure_stuck({**features, "waits_first": 1.0}) > usual
    assert measure_stuck({**features, "ticked": 1.0}) < usual
    assert measure_stuck({**features, "new_name": 1.0}) < usual
