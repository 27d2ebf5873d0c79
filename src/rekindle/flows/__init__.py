"""The steps of each operation, in order. Flows access the outside world through ports."""
