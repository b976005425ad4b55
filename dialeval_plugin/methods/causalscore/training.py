"""Training the independence classifiers end to end: stages, self-training, one folder at the end. A killed run goes on."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from accelerate import PartialState
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder
from transformers import set_seed

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import LEAK_RULE
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve, save_weights
from dialeval_plugin.training.precision import Precision, uses_bfloat16
from dialeval_plugin.training.run_folder import refuse_finished, workplace
from dialeval_plugin.version import __version__

from .classifiers import IndependenceClassifier, new_classifier
from .data import CausePairLike, OtherUtterances, Row, conditional_rows, pair_hash, unconditional_rows
from .model import CONFIG_FILE, CausalModel, CausalModelConfig, Labels, classifier_of
from .preparation import Data, Sources, prepare
from .recipes import Recipe, find_recipe
from .scorer import CAUSAL_MODEL
from .self_training import Pool, build_pool, choose, turn_probabilities
from .stages import BEST, Run, fit, measure_rows
from .texts import RowEncoder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training run depends on, apart from its data.

    Attributes:
        recipe: "default", "paper" or "code", see `recipes.Recipe`.
        backbone: a transformers checkpoint, a sentence-transformers folder, or a hub id.
        labels: "annotated" causes, or "preceding_2", see `CausalModelConfig`.
        n_epochs: in place of the recipe's.
        n_round_epochs: in place of the recipe's.
        n_rounds: in place of the recipe's.
        learning_rate: in place of the recipe's.
        max_tokens: in place of the recipe's.
        max_unlabelled: unlabelled responses that self-training looks at, of more a seeded sample; None for all.
        validation_fraction: share of the dialogues that is set aside where no validation pairs are given.
        seed: of the split, the initial weights, the order and every draw.
        precision: of training, see `uses_bfloat16`. Figures are measured in float32.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    labels: Labels = "annotated"
    n_epochs: int | None = None
    n_round_epochs: int | None = None
    n_rounds: int | None = None
    learning_rate: float | None = None
    max_tokens: int | None = None
    max_unlabelled: int | None = None
    validation_fraction: float = 0.1
    seed: int = 13
    precision: Precision = "auto"

    def find_recipe(self) -> Recipe:
        """The recipe with the numbers that are given here.

        Raises:
            InputError: as `recipes.find_recipe`, or the labels are unknown.
        """
        if self.labels not in get_args(Labels):
            raise InputError(f"labels: there are no {self.labels!r}. Choose one of {', '.join(get_args(Labels))}.")
        return find_recipe(
            self.recipe,
            n_epochs=self.n_epochs,
            n_round_epochs=self.n_round_epochs,
            n_rounds=self.n_rounds,
            learning_rate=self.learning_rate,
            max_tokens=self.max_tokens,
        )


class Trained(NamedTuple):
    """Where the model is and what its validation gave."""

    folder: Path
    record: dict[str, Any]
    """Goes into causalscore.json as `training`: options, counts, figures of the unconditional classifier and of each round."""


def train(
    sources: Sources,
    output: Path,
    options: TrainingOptions = TrainingOptions(),
    *,
    progress: bool = False,
    remember: bool = True,
) -> Trained:
    """Train both classifiers and write them to the folder `output`.

    What is finished lies in `output/.training` until the run ends; the same call after a kill goes on from the last epoch and
    ends with the same files. Without unlabelled dialogues there is no self-training.

    Args:
        sources: the data. A dialogue that is measured on is left out of the training and unlabelled data, and counted.
        output: a folder that does not hold a finished model.
        options: see `TrainingOptions`.
        progress: show the trainer's progress bars.
        remember: make this the model that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, or the data do not suffice.
    """
    options = replace(options, precision="bfloat16" if uses_bfloat16(options.precision) else "float32")
    recipe = options.find_recipe()
    refuse_finished(output, CONFIG_FILE)
    data = prepare(
        sources,
        validation_fraction=options.validation_fraction,
        max_unlabelled=options.max_unlabelled,
        seed=options.seed,
    )
    state = PartialState()
    with workplace(output, CONFIG_FILE, _identity(options, recipe, data), is_main_process=state.is_main_process) as place:
        state.wait_for_everyone()
        set_seed(options.seed)
        backbone = resolve(options.backbone)
        config = CausalModelConfig(recipe.name, options.labels, recipe.layout, recipe.truncate, recipe.max_tokens)
        trainee = _Trainee(
            Run(recipe, place, options.seed, options.precision == "bfloat16", progress), data, options, config, state
        )
        encoders = [new_classifier(backbone, device=str(state.device)) for _ in range(2)]
        figures = trainee.train_unconditional(encoders[0])
        rounds = trainee.train_conditional(encoders[1], classifier_of(encoders[0], config))
        hashes = frozenset(map(pair_hash, (*data.training, *data.validation))) | {item.dialogue for item in data.unlabelled}
        record = {
            "options": asdict(options),
            "backbone_hash": content_hash(backbone),
            "counts": data.counts,
            "unconditional": figures,
            **rounds,
            "leak_rule": LEAK_RULE,
            "version": __version__,
        }
        if state.is_main_process:
            CausalModel.build(config, encoders[0], encoders[1], hashes).save(output, {"training": record})
    if remember and state.is_main_process:
        CAUSAL_MODEL.remember(output)
    state.wait_for_everyone()
    return Trained(output, record)


def _identity(options: TrainingOptions, recipe: Recipe, data: Data) -> dict[str, Any]:
    """What has to be the same for a run to go on from another's checkpoints."""
    digest = hashlib.sha256()
    for pairs in (data.training, data.validation, data.evaluation):
        for pair in pairs:
            digest.update(repr((pair.context, pair.response, pair.causes)).encode())
        digest.update(b"|")
    for item in data.unlabelled:
        digest.update(repr(item).encode())
    return {
        "options": asdict(options),
        "recipe": to_json(asdict(recipe)),
        "data": digest.hexdigest(),
        "version": __version__,
    }


class Rows(NamedTuple):
    """Labelled rows of one classifier."""

    training: list[Row]
    validation: list[Row]
    evaluation: list[Row]


@dataclass(frozen=True, slots=True)
class _Trainee:
    """One training run: its rows, its stages and what it has finished."""

    run: Run
    data: Data
    options: TrainingOptions
    config: CausalModelConfig
    state: PartialState

    def train_unconditional(self, encoder: CrossEncoder) -> dict[str, Any]:
        """Train the unconditional classifier and return its counts and figures."""
        rows, validation, evaluation = (
            unconditional_rows(pairs, OtherUtterances(pairs), seed=self.run.seed) if pairs else []
            for pairs in (self.data.training, self.data.validation, self.data.evaluation)
        )
        self._stage("unconditional", encoder, rows, validation, self.run.recipe.n_epochs)
        return {"n_rows": len(rows), **self._figures(encoder, validation, evaluation)}

    def train_conditional(self, encoder: CrossEncoder, unconditional: IndependenceClassifier) -> dict[str, Any]:
        """Train the conditional classifier with Algorithm 1 and return the counts and figures of every round."""
        recipe = self.run.recipe
        labelled, validation, evaluation = (
            self._conditional_rows(pairs, unconditional) if pairs else []
            for pairs in (self.data.training, self.data.validation, self.data.evaluation)
        )
        if recipe.conditional_from == "unconditional":
            encoder.load_state_dict(unconditional.encoder.state_dict())
        self._stage("round_0", encoder, labelled, validation, recipe.n_epochs)
        rounds: list[dict[str, Any]] = [
            {"round": 0, "n_rows": len(labelled), "n_pseudo": 0, **self._figures(encoder, validation, evaluation)}
        ]
        if recipe.n_rounds and self.data.unlabelled:
            pool = build_pool(self.data.unlabelled, unconditional)
            rounds += self._self_train(encoder, pool, Rows(labelled, validation, evaluation), rounds[0]["validation"][BEST])
        best = max(rounds, key=lambda entry: entry["validation"][BEST])["round"] if recipe.keep_best else rounds[-1]["round"]
        encoder.load_state_dict(load_file(str(self._finished(f"round_{best}"))))
        return {"rounds": rounds, "best_round": best}

    def _self_train(self, encoder: CrossEncoder, pool: Pool, rows: Rows, best: float) -> list[dict[str, Any]]:
        """Run the rounds of Algorithm 1, each from the weights of the one before; returns their counts and figures."""
        recipe = self.run.recipe
        rounds: list[dict[str, Any]] = []
        present = list(rows.training)
        for number in range(1, recipe.n_rounds + 1):
            known = set(present) if recipe.grows else set()
            fresh = [row for row in self._pseudo_rows(number, encoder, pool) if row not in known]
            if not fresh:
                logger.info("round %d: no new pseudo-label, self-training ends", number)
                break
            present = [*(present if recipe.grows else rows.training), *fresh]
            self._stage(f"round_{number}", encoder, present, rows.validation, recipe.n_round_epochs)
            figures = self._figures(encoder, rows.validation, rows.evaluation)
            rounds.append({"round": number, "n_rows": len(present), "n_pseudo": len(fresh), **figures})
            logger.info("round %d: %s", number, to_json(rounds[-1]))
            if recipe.keep_best and figures["validation"][BEST] <= best:
                logger.info("round %d brings no gain on validation, self-training ends", number)
                break
            best = figures["validation"][BEST]
        return rounds

    def _pseudo_rows(self, number: int, encoder: CrossEncoder, pool: Pool) -> list[Row]:
        """The pseudo-labels of a round, which are kept: a resumed run trains on the same ones."""
        path = self.run.folder / f"round_{number}_pseudo.json"
        if not path.exists():
            classifier, others = classifier_of(encoder, self.config), OtherUtterances(self.data.training)
            rows = choose(pool, classifier, others, filter=self.run.recipe.filter, seed=self.run.seed + number)
            self.state.wait_for_everyone()
            if self.state.is_main_process:
                write_text(path, to_json([[list(row.texts), row.label] for row in rows]) + "\n")
            self.state.wait_for_everyone()
        return [Row(tuple(texts), label) for texts, label in read_json(path)]

    def _conditional_rows(self, pairs: Sequence[CausePairLike], unconditional: IndependenceClassifier) -> list[Row]:
        chances = turn_probabilities(
            unconditional, [([turn.text for turn in pair.context], pair.response.text) for pair in pairs]
        )
        return conditional_rows(pairs, chances, OtherUtterances(pairs), labels=self.options.labels, seed=self.run.seed)

    def _figures(self, encoder: CrossEncoder, validation: Sequence[Row], evaluation: Sequence[Row]) -> dict[str, Any]:
        classifier = classifier_of(encoder, self.config)
        figures = {"validation": measure_rows(classifier, validation)}
        return {**figures, "evaluation": measure_rows(classifier, evaluation)} if evaluation else figures

    def _stage(self, name: str, encoder: CrossEncoder, rows: Sequence[Row], validation: Sequence[Row], n_epochs: int) -> None:
        """Train one stage, or load it where it is finished; its weights go to one file, its checkpoints away."""
        finished = self._finished(name)
        if not finished.exists():
            logger.info("stage %s: %d rows, %d epochs", name, len(rows), n_epochs)
            recipe = self.run.recipe
            # Each stage starts from the same random state whether or not the stages before it ran in this process.
            set_seed(self.run.seed)
            texts = RowEncoder(encoder.tokenizer, recipe.layout, recipe.truncate, recipe.max_training_tokens)
            fit(encoder, texts, rows, validation, self.run, name=name, n_epochs=n_epochs)
            if self.state.is_main_process:
                save_weights(finished, encoder.state_dict())
                shutil.rmtree(self.run.folder / name, ignore_errors=True)
            self.state.wait_for_everyone()
        # Read back even what was just written: a resumed run starts the next stage from the same bytes.
        encoder.load_state_dict(load_file(str(finished)))
        encoder.eval()

    def _finished(self, name: str) -> Path:
        return self.run.folder / f"{name}.safetensors"
