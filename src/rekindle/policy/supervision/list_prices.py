"""Model list prices, for CLIs that report tokens but no cost.

The resulting cost is an estimate: subscribers pay a different price, and cached tokens are counted
as input. `prices:` in rekindle.yaml overrides the list. The figures are from the package
genai-prices 0.2.1 (MIT licence), for short prompts.
"""

from collections.abc import Mapping

from rekindle.documents.manifest import ModelPrice

_DOLLARS_A_MILLION = """
claude-fable-5        10     50
claude-haiku-4        1      5
claude-haiku-5        0.1    0.5
claude-opus-4         15     75
claude-opus-4-5       5      25
claude-opus-4-6       5      25
claude-opus-4-7       5      25
claude-opus-4-8       5      25
claude-opus-5         5      25
claude-opus-5-5       4      20
claude-sonnet-4       3      15
claude-sonnet-5       2      10
codex-mini            1.5    6
gemini-2.5-flash      0.3    2.5
gemini-2.5-flash-lite 0.1    0.4
gemini-2.5-pro        1.25   10
gemini-3-flash        0.5    3
gemini-3-pro          2      12
gemini-3.1-flash-lite 0.25   1.5
gemini-3.1-pro        2      12
gemini-3.5-flash      1.5    9
gemini-3.5-flash-lite 0.3    2.5
gemini-3.6-flash      1.5    7.5
gemini-3.7-flash      1.5    7.5
gemini-3.8-flash      1.5    7.5
gemini-4-argon        4      20
gpt-5                 1.25   10
gpt-5-mini            0.25   2
gpt-5-nano            0.05   0.4
gpt-5-pro             15     120
gpt-5.1               1.25   10
gpt-5.1-codex-mini    0.25   2
gpt-5.2               1.75   14
gpt-5.2-pro           21     168
gpt-5.3               1.75   14
gpt-5.4               2.5    15
gpt-5.4-mini          0.75   4.5
gpt-5.4-nano          0.2    1.25
gpt-5.4-pro           30     180
gpt-5.5               5      30
gpt-5.5-pro           30     180
gpt-5.6-luna          1      6
gpt-5.6-terra         2      6
gpt-6-astra           10     50
gpt-6-luna            0.1    0.5
gpt-6-sol             2      10
gpt-6.1-sol           2      10
gpt-6.1-terra         1      5
o3                    2      8
o4-mini               1.1    4.4
"""
"""Model name prefix, input price and output price, in dollars per million tokens. The longest
matching prefix counts.
"""


def list_prices() -> dict[str, ModelPrice]:
    """Return the list prices by model name prefix."""
    rows = (line.split() for line in _DOLLARS_A_MILLION.strip().splitlines())
    return {name: ModelPrice(float(read), float(written)) for name, read, written in rows}


def complete_prices(own: Mapping[str, ModelPrice]) -> Mapping[str, ModelPrice]:
    """Return the manifest's prices, with list prices for all other models.

    A price for `default` applies to every model that the manifest does not name.
    """
    return own if "default" in own else {**list_prices(), **own}


def find_price(prices: Mapping[str, ModelPrice], model: str) -> ModelPrice | None:
    """Return the price for a model's longest matching prefix, or for `default`, or None.

    `gpt-5` is a prefix of `gpt-5-codex`, but not of `gpt-5.5`.
    """
    if model in prices:
        return prices[model]
    names = [name for name in prices if model.startswith(f"{name}-")]
    return prices[max(names, key=len)] if names else prices.get("default")
