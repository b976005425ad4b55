"""The `dialeval` command from outside: what it prints, writes and exits with. FAULTS R02, R09, R40, R58, R63, R68."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import scorer_names
from dialeval_plugin.core.resources import metrics_path, tasks_path
from dialeval_plugin.core.signature import file_hash, short_form
from dialeval_plugin.corpora import mini
from dialeval_plugin.version import __version__
from tests import forked
from tests.cli.running import DIALEVAL, environment, names, run, run_installed, write_rows
from tests.refusals import refusal

# A package of somebody else: installed as far as Python can tell, and light, so that most tests here need no torch.
SCORERS = '''
import os
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored

class Scripted(Scorer):
    """Scores a response by its length; knows some words."""

    name = "scripted"
    columns = ("length", "scaled")
    window = 2

    def __init__(self, scale=1.0, note=None):
        self.scale, self.note = scale, note

    def score_batch(self, items):
        return [self._row(item.response.text) for item in items]

    def _row(self, text):
        if text == "interrupt" and not os.environ.get("DO_NOT_INTERRUPT"):
            raise KeyboardInterrupt
        if text == "refuse":
            return Unscored(Reason.REFUSAL, "no")
        return {"length": float("nan") if text == "nan" else float(len(text)), "scaled": float(self.scale) * len(text)}

    def signature_fields(self):
        return {"method": "scripted", "scale": self.scale, "note": repr(self.note)}
'''
ENTRY_POINTS = "[dialeval_plugin.scorers]\nscripted = scripted_scorers:Scripted\nbroken = scripted_scorers:Absent\n"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "scripted_scorers.py").write_text(SCORERS)
    installed = folder / "scripted_scorers-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-scorers\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture
def dialeval(plugins: Path, tmp_path: Path) -> Run:
    return partial(run_installed, tmp_path, PYTHONPATH=str(plugins))


def test_the_list_of_scorers_has_a_users_own_and_one_that_is_broken_hurts_itself_only(dialeval: Run) -> None:
    listed = dialeval("scorers")
    assert (listed.returncode, listed.stderr) == (0, "")
    titles = [line for line in listed.stdout.splitlines() if not line.startswith(" ")]
    assert titles == sorted([*scorer_names(), "broken", "scripted"])
    broken = (
        "scorer 'broken' (scripted_scorers:Absent) cannot be imported: module 'scripted_scorers' has no attribute 'Absent'. "
        "Repair or uninstall the package that declares it."
    )
    assert f"broken\n    {broken}\n" in listed.stdout
    assert (
        "scripted\n    Scores a response by its length; knows some words.\n"
        "    turn level; 0 to 1, higher is better; needs nothing else; from scripted-scorers\n"
    ) in listed.stdout
    shown = dialeval("scorers", "scripted")
    assert shown.stdout.splitlines()[3:] == ["options:", "    scale: any; default 1.0", "    note: any; default none"]
    refused = dialeval("scorers", "broken")
    assert (refused.returncode, refused.stdout, refused.stderr) == (3, "", f"dialeval: {broken}\n")
    wrong = dialeval("scorers", "scriptd")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("dialeval: there is no scorer 'scriptd'. Did you mean 'scripted'? Known are: ")


def test_a_scorer_is_shown_to_programs_with_its_options(dialeval: Run) -> None:
    cards = json.loads(dialeval("scorers", "--json").stdout)
    assert [card["name"] for card in cards] == sorted([*scorer_names(), "broken", "scripted"])
    card = json.loads(dialeval("scorers", "g_eval", "--json").stdout)
    options = {option["name"]: option for option in card.pop("options")}
    assert card == {**cards[[card["name"] for card in cards].index("g_eval")], "range": [1.0, 3.0], "needs": ["llm"]}
    names = ["mode", "n_samples", "temperature", "unparsed", "keep_samples", "criteria", "llm", "llm_args", "answers"]
    assert list(options) == names
    assert options["temperature"] == {
        "name": "temperature",
        "type": "float above 0",
        "default": 1.0,
        "is_required": False,
        "choices": [],
        "bounds": {"gt": 0},
        "description": "temperature of sampling.",
    }
    assert options["mode"]["choices"] == ["sampled", "weighted"]


def examples(*responses: str) -> list[dict[str, Any]]:
    return [{"context": ["Hi."], "response": response} for response in responses]


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


IN_TO_OUT = ("score", "in.jsonl", "--output", "out.jsonl")
SCRIPTED = (*IN_TO_OUT, "--scorer", "scripted")


# Scoring


def test_score_writes_rows_and_what_belongs_to_all_of_them(dialeval: Run, tmp_path: Path) -> None:
    rows = [*examples("a", "bb", "a"), {"id": "mine", "context": [], "response": "cccc", "facts": ["x"]}]
    write_rows(tmp_path / "in.jsonl", rows)
    done = dialeval("score", "in.jsonl", "--output", "out/scores.jsonl", "--scorer", "scripted", "--option", "scale=3")

    signature = f"method:scripted|scale:3|note:None|level:turn|version:{__version__}"
    after = "next: dialeval meta-eval out/scores.jsonl --ratings FILE  (how far the scores agree with people's ratings)\n"
    assert (done.returncode, done.stderr) == (0, after)
    shown = done.stdout.splitlines()
    assert (shown[:3], shown[-1]) == (
        ["length: mean 2.0000, 4 of 4 scored", short_form(signature), "length:"],
        "scores: out/scores.jsonl",
    )
    assert read_rows(tmp_path / "out" / "scores.jsonl") == [
        {"id": "0", "source": "in.jsonl:1", "length": 1.0, "scaled": 3.0},
        {"id": "1", "source": "in.jsonl:2", "length": 2.0, "scaled": 6.0},
        {"id": "2", "source": "in.jsonl:3", "length": 1.0, "scaled": 3.0},
        {"id": "mine", "source": "in.jsonl:4", "length": 4.0, "scaled": 12.0},
    ]
    meta = json.loads((tmp_path / "out" / "scores.jsonl.meta.json").read_text())
    assert re.fullmatch(r"[0-9a-f]{16}", meta.pop("source"))
    assert meta.pop("sha256") == file_hash(tmp_path / "out" / "scores.jsonl")
    kind = {
        "out_of_scope": {},
        "percentiles": None,
        "schema_version": 1,
        "scope": None,
        "shard": None,
        "keep": [],
        "with_text": False,
        "columns": ["length", "scaled"],
        "n_source": 4,
        "left_out": {},
        "main": "length",
        "level": "turn",
        "orientation": "higher",
        "signature": signature,
    }
    assert meta == {**kind, "mean": 2.0, "n_total": 4, "n_scored": 4, "unscored": {}, "complete": True}
    assert names(tmp_path / "out") == ["scores.jsonl", "scores.jsonl.meta.json"]


def test_without_an_output_nothing_is_written_and_the_worst_are_printed(dialeval: Run, tmp_path: Path) -> None:
    rows = [{"id": "a", "context": ["One?", "Two\x1b[2J?"], "response": "ccc \x07" + "c" * 80}, *examples("a", "refuse", "bb")]
    write_rows(tmp_path / "in.jsonl", rows)
    scored = ("score", "in.jsonl", "--scorer", "scripted", "--max-unscored", "1")
    done = dialeval(*scored, "--worst", "3", COLUMNS="40")

    assert (done.returncode, names(tmp_path)) == (0, ["in.jsonl"])
    summary, signature, title, *lines = done.stdout.splitlines()
    assert (summary, title) == ("length: mean 29.3333, 3 of 4 scored", "length:")
    assert signature == short_form(f"method:scripted|scale:1.0|note:None|level:turn|version:{__version__}")
    assert [line.split()[-1] for line in lines[:10]] == ["2", *["0"] * 8, "1"]
    assert lines[10:] == [
        "worst 3 of 3 (score, id):",
        "  1.0000  1",
        "      > Hi.",
        "      < a",
        "  2.0000  3",
        "      > Hi.",
        "      < bb",
        "  85.0000  a",
        "      > Two [2J?",
        "      < ccc ccccccccccccccccccccccccc...",
    ]
    assert dialeval(*scored, "--worst", "0").stdout.splitlines() == [summary, signature, title, *lines[:10]]


def test_a_terminal_without_a_sign_for_a_character_gets_its_number(dialeval: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", examples("\u00fc\u4e09"))
    done = dialeval("score", "in.jsonl", "--scorer", "scripted", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "      < \\xfc\\u4e09")


def test_more_unscored_than_allowed_exits_with_1_and_says_so_in_the_files(dialeval: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", examples("a", "refuse", "nan", "bb"))
    done = dialeval(*SCRIPTED, "--max-unscored", "0.25")

    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "length: mean 1.5000, 2 of 4 scored"
    assert done.stderr.splitlines() == [
        "WARNING scripted: 2 of 4 examples have no score: {'non_finite': 1, 'refusal': 1}",
        "2 of 4 examples have no score, more than --max-unscored 0.25 allows: {'non_finite': 1, 'refusal': 1}",
    ]
    assert read_rows(tmp_path / "out.jsonl")[1:3] == [
        {"id": "1", "source": "in.jsonl:2", "length": None, "scaled": None, "unscored": "refusal", "detail": "no"},
        {
            "id": "2",
            "source": "in.jsonl:3",
            "length": None,
            "scaled": None,
            "unscored": "non_finite",
            "detail": "length is nan",
        },
    ]
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert (meta["complete"], meta["n_scored"], meta["unscored"]) == (False, 2, {"non_finite": 1, "refusal": 1})


def test_as_many_unscored_as_allowed_exit_with_0(dialeval: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", examples("a", "refuse"))
    assert dialeval(*SCRIPTED, "--max-unscored", "0.5").returncode == 0
    assert json.loads((tmp_path / "out.jsonl.meta.json").read_text())["complete"] is True


def test_nothing_scored_has_no_mean(dialeval: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", examples("refuse"))
    done = dialeval(*SCRIPTED)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "length: no score, 0 of 1 scored")
    assert json.loads((tmp_path / "out.jsonl.meta.json").read_text())["mean"] is None


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(dialeval: Run, tmp_path: Path) -> None:
    texts = ["a" * (number % 5 + 1) for number in range(8)]  # a block is of four windows, and one of those of two rows
    write_rows(tmp_path / "in.jsonl", examples(*texts, "a", "interrupt", "dd"))
    stopped = dialeval(*SCRIPTED)

    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr == "dialeval: interrupted; the same command resumes from finished parts, if there are any\n"
    assert names(tmp_path) == ["in.jsonl", "out.jsonl.blocks"]
    resumed = dialeval(*SCRIPTED, DO_NOT_INTERRUPT="1")
    assert resumed.returncode == 0
    assert "out.jsonl.blocks: resuming from 1 finished block\n" in resumed.stderr
    assert [row["length"] for row in read_rows(tmp_path / "out.jsonl")] == [*map(len, texts), 1.0, 9.0, 2.0]


@pytest.mark.long
def test_finished_scores_are_replaced_by_the_same_run_only(dialeval: Run, tmp_path: Path) -> None:
    """TRIAL section 5: `--output` replaced the finished file of another scorer and input without a word."""
    write_rows(tmp_path / "in.jsonl", examples("a", "bb"))
    write_rows(tmp_path / "other.jsonl", examples("a", "ccc"))
    (tmp_path / "mine.csv").write_text("not a file of scores\n")

    def score(input: str, *words: str, output: str = "out.jsonl") -> subprocess.CompletedProcess[str]:
        return dialeval("score", input, "--output", output, "--scorer", "scripted", *words)

    assert score("in.jsonl").returncode == 0
    before = (tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.meta.json").read_bytes()
    assert score("in.jsonl").returncode == 0
    for refused, name in (
        (score("other.jsonl"), "out.jsonl"),
        (score("in.jsonl", "--option", "scale=2"), "out.jsonl"),
        (dialeval(*IN_TO_OUT, "--scorer", "response_length"), "out.jsonl"),
        (score("in.jsonl", output="mine.csv"), "mine.csv"),
    ):
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == (
            f"dialeval: {name}: holds something else than the scores of this scorer, with these options, of this input. "
            "Choose another name, or add --overwrite to replace it.\n"
        )
    assert ((tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.meta.json").read_bytes()) == before
    assert (tmp_path / "mine.csv").read_text() == "not a file of scores\n"
    assert score("other.jsonl", "--overwrite").returncode == 0
    assert [row["length"] for row in read_rows(tmp_path / "out.jsonl")] == [1.0, 3.0]


# Wrong input

GOOD = examples("a", "b")
SOUND = json.dumps(GOOD[0])
BOTH = "Give a list of turns as context and a string as response."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "in.jsonl: there is no such file."),
        ("", "in.jsonl: is empty, expected one JSON object a line."),
        (f"{SOUND}\n{{",
         "in.jsonl:2: not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"),
        (f'{SOUND}\n\n"a"\n', "in.jsonl:3: expected a conversation, got 'a' (str). "
         "Give a list of messages, or an object that has one under 'messages'."),
        ([*GOOD, {"context": []}], f"in.jsonl:3: has no 'response'. {BOTH}"),
        ([{"response": "a"}], f"in.jsonl:1: has no 'context'. {BOTH}"),
        ([*GOOD, {"context": [], "response": "a", "contxt": 1}],
         "in.jsonl:3: there is no field 'contxt'. Did you mean 'context'? "
         "Known are: context, facts, id, references, response. To leave other fields alone, name those to read by "
         "--columns context=NAME,response=NAME"),
        ([GOOD[0], {"context": [], "response": None}],
         "in.jsonl:2: Example '1': response: expected a string, got None (NoneType). Pass text."),
        ([GOOD[0], {"context": ["Hi.", None], "response": "a"}],
         "in.jsonl:2: Example '1': context[1]: expected a string, got None (NoneType). Pass text."),
        ([{"context": "Hi.", "response": "a", "id": "x"}],
         "in.jsonl:1: Example 'x': context: expected a list of strings, got 'Hi.' (str). Wrap a single string in a list."),
        ('[{"dialogue_id": "d", "dialog": [], "annotations": {}}]',
         "scripted: item 0 is a whole dialogue, but this scorer works at turn level. Pass Example objects."),
    ],
)  # fmt: skip
def test_a_wrong_file_exits_with_2_and_one_line(content: Any, message: str, dialeval: Run, tmp_path: Path) -> None:
    if isinstance(content, str):
        (tmp_path / "in.jsonl").write_text(content)
    elif content is not None:
        write_rows(tmp_path / "in.jsonl", content)
    before = names(tmp_path)
    done = dialeval(*SCRIPTED)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dialeval: {message}\n")
    assert names(tmp_path) == before


def test_a_file_that_is_not_there_is_refused_before_a_model_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval_plugin.hosts.judges.load_scorer_with_judge", lambda *_: pytest.fail("a model is opened"))
    assert refusal(run, "score", tmp_path / "gone.jsonl") == f"{tmp_path / 'gone.jsonl'}: there is no such file."


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--scorer", "slied"), 2,
         f"there is no scorer 'slied'. Did you mean 'slide'? Known are: "
         f"{', '.join(sorted([*scorer_names(), 'broken', 'scripted']))}. "
         "Type `dialeval scorers` for what each of them is and needs."),
        (("--scorer", "broken"), 3, "scorer 'broken' (scripted_scorers:Absent) cannot be imported: "
         "module 'scripted_scorers' has no attribute 'Absent'. Repair or uninstall the package that declares it."),
        (("--scorer", "scripted", "--option", "scale"), 2, "--option 'scale': expected name=value."),
        (("--scorer", "scripted", "--option", "size=1"), 2, "scripted: there is no option 'size'. Known are: scale, note."),
        (("--scorer", "scripted", "--llm-args", "pretrained=x"), 2,
         "scripted: there is no option 'llm_args'. Known are: scale, note."),
        (("--scorer", "scripted", "--output", "in.jsonl"), 2, "in.jsonl: is the input. Choose another name for --output."),
        (("--scorer", "scripted", "--output", "in.jsonl/out.jsonl"), 2,
         "in.jsonl/out.jsonl: cannot be written (File exists). Choose another place."),
        (("--scorer", "slide", "--variant", "big"), 2,
         "slide: variant is 'big'. Give one of slide, slm, slm_probability, slm_distance."),
    ],
)  # fmt: skip
def test_a_wrong_choice_exits_with_one_line(
    words: Sequence[str], code: int, message: str, dialeval: Run, tmp_path: Path
) -> None:
    write_rows(tmp_path / "in.jsonl", GOOD)
    before = (tmp_path / "in.jsonl").read_bytes()
    done = dialeval(*IN_TO_OUT, *words)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"dialeval: {message}\n")
    assert names(tmp_path) == ["in.jsonl"]
    assert (tmp_path / "in.jsonl").read_bytes() == before


# The real scorer


@pytest.mark.long
def test_a_killed_score_ends_with_the_same_bytes(tiny_slm: Path, tmp_path: Path) -> None:
    n_rows, block = 830, 100
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(f"from dialeval_plugin.streams import run; run.BLOCK = {block}")
    site = {"PYTHONPATH": str(tmp_path / "site")}
    dialeval = partial(run_installed, tmp_path, **site)
    write_rows(tmp_path / "in.jsonl", examples(*(f"Plum {index}." for index in range(n_rows))))

    def command(output: str) -> list[str]:
        return ["score", "in.jsonl", "--output", output, "--scorer", "slide", "--slm", str(tiny_slm), "--variant", "slm"]

    whole = dialeval(*command("whole.jsonl"))
    assert whole.returncode == 0, whole.stderr
    main, signature, *_, where = whole.stdout.splitlines()
    meta = json.loads((tmp_path / "whole.jsonl.meta.json").read_text())
    assert main == f"slm: mean {meta['mean']:.4f}, {n_rows} of {n_rows} scored"
    assert signature == short_form(meta["signature"])
    assert where == "scores: whole.jsonl"
    first = read_rows(tmp_path / "whole.jsonl")[0]
    assert list(first) == [
        "id",
        "source",
        "slm",
        "slm_probability",
        "slm_distance",
        "context_tokens_cut",
        "response_tokens_cut",
    ]

    number, killed = forked.start([DIALEVAL, *command("killed.jsonl")], cwd=tmp_path, env=environment(tmp_path, **site))
    blocks = tmp_path / "killed.jsonl.blocks"
    deadline = time.monotonic() + 300
    while not list(blocks.glob("*.jsonl")):
        assert not killed.done(), "scoring ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)
    assert killed.result().returncode == -signal.SIGKILL
    assert not (tmp_path / "killed.jsonl").exists()
    n_finished = len(list(blocks.glob("*.jsonl")))
    assert 0 < n_finished < n_rows / block

    resumed = dialeval(*command("killed.jsonl"))
    assert resumed.returncode == 0, resumed.stderr
    assert f"{blocks.name}: resuming from {n_finished} finished block" in resumed.stderr
    for name in ("killed.jsonl", "killed.jsonl.meta.json"):
        assert (tmp_path / name).read_bytes() == (tmp_path / name.replace("killed", "whole")).read_bytes()
    assert not blocks.exists()


def corpus(path: Path, *splits: mini.Split, n_sets: int) -> Path:
    """A file in DailyDialog++'s layout."""
    sets = [item for split in splits for item in mini.read_response_sets(split)[:n_sets]]
    rows = []
    for item in sets:
        responses = {"positive_responses": item.positive, "adversarial_negative_responses": item.adversarial}
        rows.append({"id": item.id, "context": item.context, **responses})
    return write_rows(path, rows)


@pytest.mark.long
def test_train_then_score_and_accuracy(dialeval: Run, tiny_encoder: Path, tmp_path: Path) -> None:
    corpus(tmp_path / "train.jsonl", "train", "test", n_sets=12)
    corpus(tmp_path / "test.jsonl", "test", n_sets=6)
    words = ["--backbone", tiny_encoder, "--epochs", "1", "--validation-fraction", "0.25", "--precision", "float32"]
    train = ["train", "slm", "--data", "train.jsonl", "--evaluation", "test.jsonl", "--output", "slm", *words]
    trained = dialeval(*train)

    assert trained.returncode == 0, trained.stderr
    # The trainers of transformers print their losses before that.
    head, columns, *figures = trained.stdout.splitlines()[-5:]
    n_test = len(mini.read_response_sets("test")[:12])
    n_used = 12 + n_test - 6
    n_validation = json.loads((tmp_path / "slm" / "slm.json").read_text())["training"]["counts"]["n_validation_contexts"]
    assert head == f"slm: trained on {n_used - n_validation} contexts, validated on {n_validation}"
    assert json.loads((tmp_path / "slm" / "scope.json").read_text())["n"] > n_used - n_validation
    assert columns == f"{'':16}{'positive':>13}{'adversarial':>13}{'overall':>13}"
    assert [line.split()[0] for line in figures] == ["slm_distance", "slm_probability", "slm"]
    assert "contexts are in the evaluation data too, or have a part of it, and are left out" in trained.stderr

    again = dialeval(*train)
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1] == (
        "dialeval: slm: holds a trained model already. Choose another folder, or delete this one."
    )

    scored = dialeval(
        "score", "test.jsonl", "--output", "scores.jsonl", "--scorer", "slide", "--variant", "slm", "--slm", "slm"
    )
    assert scored.returncode == 0, scored.stderr
    first = mini.read_response_sets("test")[0]
    ids = [row["id"] for row in read_rows(tmp_path / "scores.jsonl")]
    assert ids[: len(first.positive)] == [f"{first.id}p{index}" for index in range(len(first.positive))]

    table = dialeval("accuracy", "test.jsonl", "--slm", "slm")
    assert table.returncode == 0, table.stderr
    lines = table.stdout.splitlines()
    assert lines[0] == f"{'':24}{'positive':>22}{'adversarial':>22}{'overall':>22}"
    names_of_rows = ["SLM (distance)", "SLM (probability)", "SLM (both)", "SLM (both, >= 0.5)"]
    assert [line[:24].strip() for line in lines[1:5]] == names_of_rows
    assert [line.partition(":")[0] for line in lines[5:7]] == ["both - distance", "both - probability"]
    assert lines[7] == "6 contexts, 0 of them were in training or validation"
    assert len(lines) == 8


@pytest.mark.long
def test_accuracy_of_a_model_without_thresholds_is_refused(dialeval: Run, tiny_slm: Path, tmp_path: Path) -> None:
    corpus(tmp_path / "test.jsonl", "test", n_sets=2)
    done = dialeval("accuracy", "test.jsonl", "--slm", tiny_slm)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"dialeval: {tiny_slm}: has no thresholds, which training finds on its validation contexts. Use `dialeval train slm`.\n"
    )


# The rest


def test_the_folders_of_tasks_and_metrics_are_printed(dialeval: Run) -> None:
    for command, expected in (("tasks-path", tasks_path()), ("metrics-path", metrics_path())):
        done = dialeval(command)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected}\n", "")
        assert expected.is_dir()


@pytest.mark.long
def test_the_hosts_command_line_gets_every_word(dialeval: Run) -> None:
    shown = dialeval("lm-eval", "run", "--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("usage: lm-eval run")
    wrong = dialeval("lm-eval", "run", "--no-such-flag")
    assert wrong.returncode == 2
    assert "--no-such-flag" in wrong.stderr


@pytest.mark.parametrize(
    "words", [("scroe",), ("score",), ("score", "in.jsonl", "--worst", "-1"), ("train", "slm", "--epochs", "many")]
)
def test_a_wrong_command_line_exits_with_2_and_no_traceback(words: Sequence[str], dialeval: Run) -> None:
    done = dialeval(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: dialeval ")
    assert "Traceback" not in done.stderr


def test_an_option_of_a_scorer_is_given_in_one_way(dialeval: Run, tmp_path: Path) -> None:
    """Of `--variant slm --option variant=slide` the first counted, in silence."""
    rows = write_rows(tmp_path / "rows.jsonl", [{"context": ["Hi."], "response": "Fine."}])
    for own in (["--variant", "slm", "--option", "variant=slide"], ["--llm", "hf", "--option", "llm=vllm"]):
        done = dialeval("score", rows, "--scorer", "slide", *own)
        name = own[-1].partition("=")[0]
        expected = f"dialeval: --option {name}: is given a second time, by an option of its own. Leave one of them out.\n"
        assert (done.returncode, done.stderr) == (2, expected)


def test_results_of_others_without_a_number_are_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """lm-eval writes NaN for them: the command ended with 2 after the run, and named neither file nor next step."""
    path = tmp_path / "results_2026-03-01T00-00-00.json"
    result = {"results": {"theirs": {"acc,none": math.nan}}, "configs": {"theirs": {}, "ours": {"metadata": {"dialeval": {}}}}}
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.cli.main", lambda _: path.write_text(json.dumps(result)))
    done = run("lm-eval", "run", "--output_path", tmp_path)
    assert (done.exit_code, done.stdout) == (0, f"results: {path}\n")
