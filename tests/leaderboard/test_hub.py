"""The way to the Hub, against a stand-in on loopback: what arrives, and that the token stays out of sight."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from dialeval_plugin.leaderboard.build import FILES, BuildResult, write
from dialeval_plugin.leaderboard.exports import push, write_space
from dialeval_plugin.version import __version__
from tests.cli.running import run_installed
from tests.hub_stand_in import StandIn, hub_stand_in
from tests.refusals import refused

TOKEN = "hf_thisIsTheSecret"  # noqa: S105 - made up


@pytest.fixture(scope="module")
def folder(built: BuildResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("board")
    write(built, place)
    (place / "private notes.txt").write_text("not for the Hub")
    return place


def pushed(hub: StandIn, folder: Path, *options: str, home: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: the host reads HF_ENDPOINT when it is imported."""
    online = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return run_installed(home, "leaderboard", "push", "me/board", "--folder", folder, *options, **online)


@pytest.mark.long
def test_data_set_and_space_arrive_whole_and_nothing_else_does(folder: Path, tmp_path: Path) -> None:
    with hub_stand_in() as hub:
        done = pushed(hub, folder, "--private", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(made["type"], made["name"]) for made in hub.created] == [("dataset", "board"), ("space", "board")]
    assert hub.created[1]["sdk"] == "gradio"
    assert sorted(hub.files) == ["datasets/me/board", "spaces/me/board"]
    assert sorted(hub.files["datasets/me/board"]) == sorted([*FILES, "README.md"])
    assert sorted(hub.files["spaces/me/board"]) == sorted([*FILES, "README.md", "app.py", "requirements.txt"])
    for name in FILES:
        assert hub.files["datasets/me/board"][name] == (folder / name).read_bytes()
    card = yaml.safe_load(hub.files["datasets/me/board"]["README.md"].decode().split("---")[1])
    assert card["configs"] == [{"config_name": "default", "data_files": "leaderboard.csv"}]
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in done.stdout + done.stderr
    assert done.stdout.startswith("uploaded to dataset me/board:\n  README.md (")


@pytest.mark.long
def test_a_refusal_is_one_line_without_the_token(folder: Path, tmp_path: Path) -> None:
    with hub_stand_in() as hub:
        hub.refuse = 401
        done = pushed(hub, folder, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert TOKEN not in done.stderr
    assert done.stderr.startswith("dialeval: dataset me/board: the Hub refused (401: ")
    assert done.stderr.endswith("Type `hf auth login` with a token that may write.\n")


@pytest.mark.long
def test_a_hub_that_cannot_be_reached_is_one_line(folder: Path, tmp_path: Path) -> None:
    """TRIAL section 4: `leaderboard push` offline ended in the traceback of the HTTP library."""
    with hub_stand_in() as gone:
        pass
    done = pushed(gone, folder, home=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    problem = "the Hub cannot be reached (ConnectError). Check the network and HF_ENDPOINT."
    assert done.stderr == f"dialeval: dataset me/board: {problem}\n"


def test_a_dry_run_names_the_files_and_asks_the_hub_nothing(folder: Path) -> None:
    # Sockets are blocked but for loopback, and nothing listens at the Hub's address.
    uploads = push(folder, "me/board", dry_run=True)
    assert [(upload.kind, upload.repo_id) for upload in uploads] == [("dataset", "me/board"), ("space", "me/board")]
    assert uploads[0].files["leaderboard.csv"] == (folder / "leaderboard.csv").stat().st_size
    assert [upload.kind for upload in push(folder, "me/board", dry_run=True, space=False)] == ["dataset"]


def test_a_name_that_is_none_and_a_folder_that_lacks_the_page_are_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("board", "a/b/c", "../x", "me/bo ard", ""):
        with refused(f"{name!r}: is not the name of a repository of the Hub. Give OWNER/NAME."):
            push(folder, name, dry_run=True)
    (tmp_path / "leaderboard.json").write_bytes((folder / "leaderboard.json").read_bytes())
    with refused(f"{tmp_path}: leaderboard.csv is not there. Build the leaderboard again."):
        push(tmp_path, "me/board", dry_run=True)


def test_the_space_shows_the_page_in_a_frame_that_may_run_its_script_only(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_space(folder, tmp_path, title='A "title": with a colon')
    card = yaml.safe_load((tmp_path / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert (card["title"], card["sdk"], card["app_file"]) == ('A "title": with a colon', "gradio", "app.py")
    assert (tmp_path / "requirements.txt").read_text(encoding="utf-8") == ""
    write_space(folder, tmp_path / "demo", demo=True)
    assert (tmp_path / "demo" / "requirements.txt").read_text(encoding="utf-8") == f"dialeval-plugin>={__version__}\n"
    # The Space brings gradio; here only its name has to be there.
    monkeypatch.setitem(sys.modules, "gradio", ModuleType("gradio"))
    names = {"__file__": str(tmp_path / "app.py"), "__name__": "app"}
    source = (tmp_path / "app.py").read_text(encoding="utf-8").replace("-> gradio.Blocks", "")
    exec(compile(source, "app.py", "exec"), names)  # noqa: S102 - the app that was just written
    frame = names["frame"]()  # type: ignore[operator]
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert frame.count('"') == 8
    assert 'sandbox="allow-scripts"' in frame
