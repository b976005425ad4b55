"""Logs of chats with chatbots, as `dialeval train acceptance` reads them, of public data: texts and who spoke, no rating.

    python -m reproduction.general.logs FOLDER

writes `convai1.jsonl`, `dstc9.jsonl` (without ConTurE's dialogues, which are reported) and `reliable_eval.jsonl`.
DIALEVAL_DATA_DIR names the folder with `convai1`, `dstc9` and `reliable_eval`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dialeval_plugin.conversations.messages import ASSISTANT, USER
from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.files import read_json, write_json_lines
from dialeval_plugin.corpora.readers import convai
from reproduction.data import data_folder
from reproduction.fusion.sets import dstc9_dialogues, read_chats

Chat = tuple[str, list[Turn]]


def _chat(id: str, turns: Sequence[Turn], bot: str) -> Chat:
    return id, [Turn(turn.text, ASSISTANT if turn.speaker == bot else USER) for turn in turns]


def convai1(data: Path) -> Iterator[Chat]:
    """The dialogues of one person and one chatbot."""
    for name in convai.CONVAI1_FILES:
        for row, dialogue in zip(
            read_json(data / "convai1" / name), convai.read_convai1([data / "convai1" / name]), strict=True
        ):
            bots = [user["id"] for user in row["users"] if user["userType"] == convai.BOT]
            if len(bots) == 1:
                yield _chat(dialogue.id, dialogue.turns, bots[0])


def dstc9(data: Path) -> Iterator[Chat]:
    """All dialogues but those that ConTurE has."""
    reported = set(read_json(data / "dstc9" / "conture_rows.json"))
    for number, dialogue in enumerate(dstc9_dialogues(data / "dstc9")):
        if number not in reported:
            yield _chat(dialogue.id, dialogue.turns, "System")


def reliable_eval(data: Path) -> Iterator[Chat]:
    """All chats."""
    for dialogue in read_chats(data / "reliable_eval" / "reliable-dial_text.txt"):
        yield _chat(dialogue.id, dialogue.turns, "Chatbot")


LOGS = {"convai1": convai1, "dstc9": dstc9, "reliable_eval": reliable_eval}


def write_logs(folder: Path, data: Path, names: Iterable[str] = tuple(LOGS)) -> list[Path]:
    """Write logs of the public data in `data` and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name in names:
        files.append(folder / f"{name}.jsonl")
        rows = (
            {"id": id, "turns": [{"speaker": turn.speaker, "text": turn.text} for turn in turns]}
            for id, turns in LOGS[name](data)
        )
        write_json_lines(files[-1], rows)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for path in write_logs(parser.parse_args(arguments).folder, data_folder()):
        print(path)


if __name__ == "__main__":
    main()
