"""A short soak with a real CLI; `just soak` runs the long ones."""

import pytest

from loopback.fixtures import require_namespaces
from sampling import WHOLE
from survival.soak import verdict
from survival.soak.run import Soak

pytestmark = [
    pytest.mark.torture,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not WHOLE, reason="takes long: only in `just torture`"),
]


def test_six_cycles_with_faults(codex_program, tmp_path):
    require_namespaces()
    found = Soak("codex", 4, 6, tmp_path / "soak").run()
    assert sum(found.faults.values()) == 3, found.evidence
    assert verdict.find_troubles(found) == []
