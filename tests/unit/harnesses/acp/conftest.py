import pytest

from acp_stage import AcpStage


@pytest.fixture
def stage(tmp_path):
    """A folder with a scripted agent."""
    return AcpStage(tmp_path)
