"""One scorer, or metric, in several threads, and in other processes: the scores that it has alone."""

from __future__ import annotations

import copy
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import datasets
import pytest
from joblib.externals.loky import get_reusable_executor

from dialeval_plugin import examples_from, load_metric, load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Item
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.locks import CallLock
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.terminal import Progress
from tests.refusals import refused
from tests.sealed import seal
from tests.test_damaged_folders import proxy_folder, reconstruction_folder  # noqa: F401 - fixtures

BACKENDS = ("torch", "onnx", "openvino", "openvino-int8")
TRAINED: dict[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {
    "assistant": ("tiny_assistant", lambda folder: {"model": str(folder)}),
    "general": ("tiny_general", lambda folder: {"model": str(folder)}),
    "slide": ("tiny_slm", lambda folder: {"slm": str(folder), "variant": "slm"}),
    "sentence_similarity": ("tiny_encoder", lambda folder: {"encoder": str(folder)}),
    "causalscore": ("tiny_causal_model", lambda folder: {"model": str(folder)}),
    "dialogue_likelihood": ("tiny_breakdown_models", lambda models: {"model": str(models.lm)}),
    "dialogue_breakdown": ("tiny_breakdown_models", lambda models: {"model": str(models.odin), "method": "odin_g"}),
    "dialogue_reconstruction": ("reconstruction_folder", lambda folder: {"model": str(folder)}),
    "glue_proxy": (
        "proxy_folder",
        lambda folder: {"regression": f"{folder}/proxy.json", "models": {"cola": f"{folder}/cola"}},
    ),
}
"""By scorer: the fixture of a tiny model, and the options that name it."""
ON_BACKENDS = ("assistant", "general", "slide", "sentence_similarity")
"""Those that other backends run; the tiny model of causalscore is no regression over vectors."""
IN_THE_BOX: dict[str, tuple[str, dict[str, Any]]] = {
    "general in the box": ("general", {}),
    "assistant in the box": ("assistant", {}),
    "causalscore in the box": ("causalscore", {}),
    "general-open in the box": ("general", {"model": "general-open"}),
    "assistant-open in the box": ("assistant", {"model": "assistant-open"}),
    "slide in the box": ("slide", {"variant": "slm"}),
    "language-model in the box": ("dialogue_likelihood", {}),
    "auto": ("auto", {}),
}
"""By model: the scorer, and the options that name it."""
MARKS = {
    **dict.fromkeys(("general in the box", "causalscore in the box"), ()),
    # Weights alone tell them from the first one, or from the small model.
    **dict.fromkeys(
        ("general-open in the box", "assistant in the box", "assistant-open in the box"),
        (pytest.mark.long, pytest.mark.exhaustive),
    ),
}
CHOICES = [
    *((name, backend) for name in TRAINED for backend in (BACKENDS if name in ON_BACKENDS else BACKENDS[:1])),
    *(pytest.param(name, "torch", marks=MARKS.get(name, pytest.mark.long)) for name in IN_THE_BOX),
]
N_THREADS = 8
IMPORTED = (
    *("transformers.core_model_loading", "transformers.models.bert.modeling_bert", "scipy.stats"),
    "dialeval_plugin.methods.general.scorer",
)
"""Modules that a process imports to score."""


def make(name: str, backend: str, request: pytest.FixtureRequest) -> Scorer:
    if name in IN_THE_BOX:
        scorer, options = IN_THE_BOX[name]
        return load_scorer(scorer, **options)
    fixture, options = TRAINED[name]
    given = options(request.getfixturevalue(fixture))
    return load_scorer(name, **given, **({"backend": backend} if name in ON_BACKENDS else {}))


def lots(level: str) -> list[list[Item]]:
    """For each thread other items, some contexts of which they share."""
    base = mini.read_examples("test")[:4]
    found: list[list[Item]] = []
    for number in range(N_THREADS):
        made = [
            Example.from_texts(
                [*(turn.text for turn in item.context[-2:]), *([f"number {number} {place}"] if place % 2 else [])],
                base[(place + number) % len(base)].response.text,
                id=f"{number}-{place}",
                references=[item.response.text],
            )
            for place, item in enumerate(base)
        ]
        found.append([Dialogue(one.id, (*one.context, one.response)) if level == "dialogue" else one for one in made])
    return found


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads change places a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(call: Callable[[int], Any]) -> list[Any]:
    """Return the results of `call` for each number of a thread, all begun at once, twice each."""
    barrier = threading.Barrier(N_THREADS)

    def work(number: int) -> Any:
        barrier.wait()
        return [call(number) for _ in range(2)]

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(work, range(N_THREADS)))


@pytest.mark.parametrize(("name", "backend"), CHOICES)
def test_one_scorer_in_eight_threads_scores_as_alone(name: str, backend: str, request: pytest.FixtureRequest) -> None:
    scorer = make(name, backend, request)
    items = lots(scorer.level)
    alone = [scorer.score(lot) for lot in items]
    assert in_threads(lambda number: scorer.score(items[number])) == [[found] * 2 for found in alone]


@pytest.mark.parametrize("name", ["general", "slide", "causalscore", "auto"])
def test_one_scorer_explains_in_eight_threads(name: str, request: pytest.FixtureRequest) -> None:
    scorer = make(name, "torch", request)
    items = lots(scorer.level)
    alone = [scorer.explain(lot) for lot in items]

    def mixed(number: int) -> list[str]:
        scorer.score(items[number])
        return scorer.explain(items[number])

    assert in_threads(mixed) == [[found] * 2 for found in alone]


def test_one_stream_a_thread(tiny_general: Path) -> None:
    scorer = load_scorer("general", model=str(tiny_general))
    items = lots("turn")
    alone = [list(scorer.score_stream(lot, block=4)) for lot in items]
    assert in_threads(lambda number: list(scorer.score_stream(items[number], block=4))) == [[found] * 2 for found in alone]


@pytest.mark.parametrize(
    "name", ["general", pytest.param("assistant", marks=pytest.mark.exhaustive), "bleu", "response_length"]
)
def test_one_metric_of_evaluate_in_eight_threads(name: str) -> None:
    metric = load_metric(name)

    def compute(number: int) -> Any:
        lot = [item for item in items[number] if isinstance(item, Example)]
        return metric.compute(
            predictions=[one.response.text for one in lot],
            contexts=[[turn.text for turn in one.context] for one in lot],
            references=[list(one.references) for one in lot],
        )

    items = lots("turn")
    # The options of the first call open the scorer: eight threads at once.
    together = in_threads(compute)
    assert together == [[compute(number)] * 2 for number in range(N_THREADS)]


@pytest.mark.long
def test_a_scorer_works_in_forked_and_in_spawned_processes(tiny_general: Path) -> None:
    """With two threads of OpenMP a forked process waited for ever, and no scorer could be pickled for a spawned one."""
    code = f"""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dialeval_plugin import load_scorer
from tests.core.elsewhere import send_values, values_of
if __name__ == "__main__":
    scorers = [load_scorer("general", model={str(tiny_general)!r}, backend=name, device="cpu") for name in {BACKENDS}]
    alone = list(map(values_of, scorers))
    context = multiprocessing.get_context("fork")
    # A forked process has the scorer as it is, with the model that is open.
    for scorer, expected in zip(scorers, alone):
        queue = context.Queue()
        process = context.Process(target=send_values, args=(scorer, queue))
        process.start()
        found = queue.get(timeout=240)
        process.join()
        print(process.exitcode, found == expected)
    # The pool sends pickled scorers, whose models are opened in the other process.
    for start in ("fork", "spawn"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(start)) as pool:
            print(*(pool.submit(values_of, scorer).result(timeout=240) == expected for scorer, expected in zip(scorers, alone)))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600, env=environment
    )
    assert done.stdout == "0 True\n" * len(BACKENDS) + "True True True True\n" * 2, done.stderr


@pytest.mark.parametrize(("name", "backend"), CHOICES)
def test_a_pickled_scorer_scores_as_before(name: str, backend: str, request: pytest.FixtureRequest) -> None:
    scorer = make(name, backend, request)
    items = lots(scorer.level)[0]
    scores = scorer.score(items)
    for again in (ForkingPickler.loads(ForkingPickler.dumps(scorer)), copy.deepcopy(scorer)):
        assert again is not scorer
        assert again.score(items) == scores


def test_a_scorer_whose_model_has_changed_since_it_was_pickled_is_refused(tiny_general: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_general, tmp_path / "model")
    scorer = load_scorer("general", model=str(folder))
    pickled, before = bytes(ForkingPickler.dumps(scorer)), str(scorer.score([]).signature)
    config = folder / "config.json"
    config.write_text(config.read_text() + " ")
    after = str(load_scorer("general", model=str(seal(folder))).score([]).signature)
    assert before != after
    with refused(
        f"general: was pickled as {before}, and opened again it is {after}. Make the scorer where it is used.", ModelLoadError
    ):
        ForkingPickler.loads(pickled)


@pytest.mark.long
def test_a_scorer_scores_in_the_processes_of_a_datasets_map(tiny_general: Path) -> None:
    scorer = load_scorer("general", model=str(tiny_general), backend="onnx")
    examples = mini.read_examples("test")[:8]
    rows = datasets.Dataset.from_list([{"place": place} for place in range(len(examples))])
    found = rows.map(lambda row: {"score": scorer.score([examples[row["place"]]]).values[0]}, num_proc=2)["score"]
    assert list(found) == [scorer.score([example]).values[0] for example in examples]


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "name"),
    [
        ("forkserver", "general"),
        ("fork", "assistant"),
        pytest.param("fork", "general", marks=pytest.mark.exhaustive),
        pytest.param("forkserver", "assistant", marks=pytest.mark.exhaustive),
    ],
)
def test_one_scorer_in_four_processes_scores_as_alone(start: str, name: str) -> None:
    """To the bit, each process other items, all at once; a fork server's are sent the scorer as spawned ones are."""
    scorer = load_scorer(name)
    items = lots(scorer.level)[:4]
    alone = [scorer.score(lot) for lot in items]
    context = multiprocessing.get_context(start)
    # Imported once instead of four times.
    context.set_forkserver_preload(list(IMPORTED))
    with ProcessPoolExecutor(len(items), context) as processes:
        found = list(processes.map(scorer.score, items))
    assert found == alone
    assert [list(scores) for scores in found] == [list(scores) for scores in alone]


def test_a_table_of_scores_goes_through_pickle_and_deepcopy() -> None:
    scores = load_scorer("general").score([*lots("turn")[0], Example.from_texts(["Hi."], "", id="blank")])
    for again in (ForkingPickler.loads(ForkingPickler.dumps(scores)), copy.deepcopy(scores)):
        assert again == scores
        assert list(again.rows(with_text=True)) == list(scores.rows(with_text=True))
        assert str(again.signature) == str(scores.signature)


def test_scores_scorers_and_metrics_go_to_other_processes_and_back(tiny_general: Path) -> None:
    """By joblib's processes, which pickle as Spark does; a signature could not be pickled, so no scores came back."""
    chats = [
        [{"role": "user", "content": "Hi there."}, {"role": "assistant", "content": f"I have {n} cats."}] for n in range(4)
    ]
    scorer = load_scorer("general", model=str(tiny_general))
    metric = load_metric("general", model=str(tiny_general))
    items, halves = examples_from(chats), (slice(2), slice(2, 4))
    # One, which imports for five seconds: with n_jobs=1 joblib.Parallel starts none.
    processes = get_reusable_executor(max_workers=1)
    found = list(processes.map(scorer.score, [items[half] for half in halves]))
    assert found == [scorer.score(items[half]) for half in halves]
    assert [row["source"] for part in found for row in part] == [row["source"] for row in scorer.score(items)]
    results = [processes.submit(metric.compute, conversations=chats[half]).result() for half in halves]
    assert results == [metric.compute(conversations=chats[half]) for half in halves]


def test_a_metric_computes_in_the_processes_of_a_datasets_map(tiny_general: Path) -> None:
    chats = [
        {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": f"{n} cats."}]} for n in range(4)
    ]
    metric = load_metric("general", model=str(tiny_general))
    rows = datasets.Dataset.from_list(chats)
    found = rows.map(
        lambda batch: {"score": metric.compute(conversations=batch["messages"])["scores"]}, batched=True, num_proc=2
    )
    halves = (slice(2), slice(2, 4))
    alone = [metric.compute(conversations=[chat["messages"] for chat in chats[half]])["scores"] for half in halves]
    assert list(found["score"]) == [score for scores in alone for score in scores]


def _draw() -> None:
    Progress(total=1).close()


OF_A_SCORER = CallLock()


@pytest.mark.parametrize(
    ("lock", "use"),
    [(OF_A_SCORER, OF_A_SCORER.__enter__), (Progress.get_lock(), _draw)],
    ids=["of a scorer", "of progress bars"],
)
def test_a_lock_that_a_thread_held_when_the_process_was_forked_is_free_in_the_other(lock: Any, use: Callable[[], None]) -> None:
    context, held, done = multiprocessing.get_context("fork"), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    process = context.Process(target=use)
    process.start()
    process.join(60)
    process.kill()
    done.set()
    thread.join()
    process.join()
    assert process.exitcode == 0
