"""`rekindle pipeline`: the group of commands for pipelines."""

import click

from rekindle.cli.pipelines.pipeline_clean import clean
from rekindle.cli.pipelines.pipeline_logs import logs
from rekindle.cli.pipelines.pipeline_results import diff, merge
from rekindle.cli.pipelines.pipeline_start import resume, run, stop
from rekindle.cli.pipelines.pipeline_status import status


@click.group()
def pipeline() -> None:
    """Run a pipeline from rekindle.yaml, with steps and parallel workers."""


for command in (run, status, stop, resume, logs, diff, merge, clean):
    pipeline.add_command(command)
