"""Tables with one row for each value of a type."""

from typing import Literal

import pytest

from rekindle.documents.tables import require_rows, require_same

One = Literal["a", "b"]
Two = Literal["c"]


def test_a_table_with_a_row_for_each_word():
    require_rows({"a": 1, "b": 2, "c": 3}, One, Two)
    require_same(["a"], {"a"})


@pytest.mark.parametrize("table", [{"a"}, {"a", "b", "c"}, set()])
def test_a_missing_or_additional_row_is_refused(table):
    with pytest.raises(TypeError, match="without a row"):
        require_rows(table, One)
