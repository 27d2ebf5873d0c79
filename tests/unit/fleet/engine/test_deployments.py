"""A change of the current build while the engine is busy."""

import asyncio

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.engine import deployments


class Engine:
    """Answers the given changes of the current build, one after the other."""

    namespace, identity = "default", "tests"

    def __init__(self, *answers):
        self.workflow_service = self
        self.current, self.asked = "1", []
        self._answers = list(answers)

    async def describe_worker_deployment(self, _request, **_):
        found = DescribeWorkerDeploymentResponse(conflict_token=self.current.encode())
        routing = found.worker_deployment_info.routing_config
        routing.current_deployment_version.build_id = self.current
        return found

    async def set_worker_deployment_current_version(self, request, **_):
        self.asked.append(request.build_id)
        status, self.current = self._answers.pop(0)
        if status is not None:
            raise RPCError("no", status, b"")


@pytest.fixture(autouse=True)
def no_routing(monkeypatch):
    async def wait(_client):
        pass

    monkeypatch.setattr(deployments, "_await_routing", wait)


LATE, CONFLICT = RPCStatusCode.CANCELLED, RPCStatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    "answers",
    [
        [(None, "2")],
        [(LATE, "2")],
        [(LATE, "1"), (None, "2")],
        [(LATE, "1"), (CONFLICT, "2")],
    ],
    ids=["at once", "late, and made", "late, and lost", "late, and made before the next one"],
)
def test_a_late_answer_is_not_a_failure(answers):
    engine = Engine(*answers)
    asyncio.run(deployments.set_current(engine, "2"))
    assert (engine.current, engine.asked) == ("2", ["2"] * len(answers))


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([(CONFLICT, "3")], EngineError),
        ([(RPCStatusCode.PERMISSION_DENIED, "1")], RPCError),
        ([(LATE, "1")] * deployments.FLEET_TRIES, RPCError),
    ],
    ids=["another operator", "not allowed", "always late"],
)
def test_other_failures_are_raised(answers, error):
    engine = Engine(*answers)
    with pytest.raises(error):
        asyncio.run(deployments.set_current(engine, "2"))
    assert len(engine.asked) == len(answers)
