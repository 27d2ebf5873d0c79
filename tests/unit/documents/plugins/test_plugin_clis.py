"""The commands with which the CLIs install the plugin."""

from pathlib import Path

from rekindle.documents.plugins.plugin_clis import CLIS

FILES = Path(__file__).parents[4] / "src/rekindle/plugin_files"


def test_every_command_names_the_folder_as_one_argument():
    """A folder with a space stays one argument."""
    for cli in CLIS.values():
        words = [word for command in cli.make_install("/a b/c") for word in command]
        assert words.count("/a b/c") == 1
        assert not any("{" in word for word in words)


def test_the_folders_and_hooks_are_in_the_package():
    for cli in CLIS.values():
        assert (FILES / cli.folder).is_dir()
        assert (FILES / cli.hooks).is_file()
        assert bool(cli.listing) != bool(cli.metadata and cli.manifest)
