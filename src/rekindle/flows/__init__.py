"""The steps that make up each operation. Flows reach the outside world only through ports."""
