"""The stored messages are those that tell a person about a problem, and the last ones."""

import pytest

from survival.store import find_told

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ("", []),
        ("tokens used\n1,523\n", ["tokens used"]),
        ("begun\nAll done\n", ["All done"]),
        ("ERROR: a\nError: usage limit\nworks\nAll done", ["Error: usage limit", "All done"]),
        ("2026-11-19 01:34:49  ! ended by SIGKILL\nend", ["! ended by SIGKILL", "end"]),
        ("2026-11-18 21:31:46,501 - INFO - done", ["INFO - done"]),
        ("Error\nError", ["Error"]),
        ("wrote /x/build/survival/t/tool-killed/1/disk/project/a\nend", ["end"]),
        (
            "401 failed, url: http://127.0.0.1:40839/v1, request id: req_01\nend",
            ["401 failed, url:", "end"],
        ),
    ],
)
def test_what_a_tool_told(messages, told):
    assert find_told(messages) == told
