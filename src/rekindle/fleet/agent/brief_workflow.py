"""Workflow that schedules of earlier versions start when an agent's brief is due."""

from temporalio import workflow

from rekindle.fleet.agent.workflow import AgentWorkflow


@workflow.defn(name="Brief")
class BriefWorkflow:
    """Notifies the agent's workflow that its brief is due."""

    @workflow.run
    async def run(self, agent: str) -> None:
        handle = workflow.get_external_workflow_handle_for(AgentWorkflow.run, agent)
        await handle.signal(AgentWorkflow.brief_due)
