"""Links work once, within a minute, and only for their own server."""

import os

import pytest

from rekindle.errors import UsageError
from rekindle.web.page_links import PageLinks, PageSessions, find_running


@pytest.fixture
def links():
    return PageLinks(18377)


def read_token(link):
    start, _, token = link.partition("#")
    assert start == "http://127.0.0.1:18377/open"
    return token


def test_a_link_opens_one_session(links):
    sessions = PageSessions(links)
    token = read_token(links.make_link())
    session = sessions.open(token)
    assert session
    assert sessions.accepts(f"Bearer {session}")
    assert sessions.open(token) is None


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer x", "bearer {}", "{}"])
def test_other_headers_are_not_accepted(links, header):
    sessions = PageSessions(links)
    session = sessions.open(read_token(links.make_link()))
    assert not sessions.accepts(header.format(session))


def test_a_link_is_not_a_session_token(links):
    sessions = PageSessions(links)
    assert not sessions.accepts(f"Bearer {read_token(links.make_link())}")


@pytest.mark.parametrize(("age", "is_valid"), [(0, True), (50, True), (62, False), (-30, False)])
def test_a_link_expires(links, age, is_valid):
    token = read_token(links.make_link())
    path = links._find_file(token)
    created = path.stat().st_mtime - age
    os.utime(path, (created, created))
    assert (PageSessions(links).open(token) is not None) is is_valid


def test_only_the_user_can_read_a_link(links):
    path = links._find_file(read_token(links.make_link()))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_running_server_is_found_and_holds_its_port(links):
    token = read_token(links.make_link())
    with links.hold():
        assert links.port in find_running()
        assert not links.use(token), "a link of an earlier server is removed"
        with pytest.raises(UsageError, match="already in use"), PageLinks(links.port).hold():
            pass
    assert links.port not in find_running()


def test_a_link_through_a_proxy_has_its_name(links):
    assert links.make_link("agents.example").startswith("https://agents.example/open#")
