"""The steps of each operation, in order. Flows reach the outside world through ports."""
