"""The schema mark of a markdown document."""

import pytest

from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.formats.schema_mark import check_mark, decode_text, render_mark


def test_a_mark_is_a_comment():
    assert render_mark("relay", 2) == "<!-- rekindle: relay 2 -->\n"


@pytest.mark.parametrize(
    "head",
    [
        "",
        "text",
        render_mark("relay", 1),
        render_mark("relay", 2),
        render_mark("brief", 9),
        "<!--rekindle:relay 2-->",
    ],
)
def test_a_schema_that_is_known(head):
    check_mark(head, "relay", 2)


@pytest.mark.parametrize(
    "head",
    [
        render_mark("relay", 3),
        render_mark("brief", 1) + render_mark("relay", 9),
        "<!--rekindle: relay 12345678901-->",
    ],
)
def test_a_newer_schema_is_refused(head):
    with pytest.raises(NewerSchemaError):
        check_mark(head, "relay", 2)


def test_the_text_of_a_document():
    assert decode_text("a\r\nb", "relay") == "a\r\nb"
    assert decode_text("é\r\n".encode(), "relay") == "é\r\n"
    with pytest.raises(DocumentError, match=r"byte 1\)") as caught:
        decode_text(b"a\xff", "relay")
    assert "UTF-8" in (caught.value.hint or "")
