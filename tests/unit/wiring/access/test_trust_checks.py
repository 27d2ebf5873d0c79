"""What is recorded when the user accepts a folder, and in which order."""

from rekindle import config
from rekindle.stores.folders import private_files
from rekindle.wiring.access import trust_checks

MANIFEST = """version: 1
fleet: {address: "127.0.0.1:7233"}
agents: {trades: {harness: command, command: [worker]}}
"""


def test_a_command_that_starts_meanwhile_finds_trust_and_settings(tmp_path, monkeypatch):
    """Three workers of a fleet start at once: none finds a trusted folder without its settings."""
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    project = config.load_project(tmp_path)
    record_trust = trust_checks.trust_records.record_trust
    seen = []

    def see_what_is_accepted(*arguments) -> None:
        """Look as another command does, right after the trust is recorded."""
        record_trust(*arguments)
        trust_checks.require_fleet(project)
        trust_checks.require_accepted(project, "trades")
        seen.append(arguments)

    monkeypatch.setattr(trust_checks.trust_records, "record_trust", see_what_is_accepted)
    trust_checks.accept_project(project)
    assert seen


def test_settings_of_another_folder_at_the_same_path_are_removed(tmp_path):
    folder = tmp_path / "project"
    for agent in ("earlier", "trades"):
        folder.mkdir()
        (folder / "rekindle.yaml").write_text(MANIFEST.replace("trades", agent))
        trust_checks.accept_folder(folder)
        folder.rename(tmp_path / f"moved-{agent}")
    (tmp_path / "moved-trades").rename(folder)
    assert private_files.find_private_project(folder).agents() == ["trades"]
