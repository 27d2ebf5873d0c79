"""Doubles of the services, and projects that no other test sees."""

import shutil

import pytest

from phone.phone_world import AskingProject, Desk
from phone.telegram_double import Telegram
from rekindle.system.files import user_folder


@pytest.fixture(autouse=True)
def _own_records():
    """Hide the projects and the phones of other tests."""
    for name in ("projects", "phone"):
        shutil.rmtree(user_folder.make_user_folder() / name, ignore_errors=True)


@pytest.fixture
def telegram():
    with Telegram() as double:
        yield double


@pytest.fixture
def project(tmp_path):
    return AskingProject(tmp_path / "shop")


@pytest.fixture
def add_project(tmp_path):
    return lambda name: AskingProject(tmp_path / name)


@pytest.fixture
def desk(telegram):
    return Desk(telegram)
