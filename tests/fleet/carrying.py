"""A workflow that passes one text through every place where an engine stores something."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    import msgspec


class Page(msgspec.Struct, frozen=True):
    text: str
    wrong: bool = False


@activity.defn
async def read(page: Page) -> list[Page]:
    activity.heartbeat(page)
    if page.wrong:
        raise ApplicationError(f"unreadable: {page.text}", page, type="Unreadable")
    return [page, page]


@workflow.defn
class Carrying:
    def __init__(self) -> None:
        self._said: Page | None = None

    @workflow.run
    async def run(self, page: Page) -> Page:
        await workflow.wait_condition(lambda: self._said is not None)
        await workflow.execute_activity(
            read,
            page,
            start_to_close_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        return page

    @workflow.update
    def say(self, page: Page) -> Page | None:
        before, self._said = self._said, page
        return before
