"""Tables of scores and ratings as people have them: what a column is, how numbers are written, and what rating tools export."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.corpora.rated_items import RatedItem, read_rated_items
from dialeval_plugin.corpora.score_files import read_score_file
from dialeval_plugin.labels.scores import read_scored_rows
from dialeval_plugin.reports.score_alignment import AlignedScores, align
from tests.refusals import refused

IDS = "abcde"
RATINGS = ((5, 4), (2, 2), (4, 3), (3, 3), (1, 1))
"""Ratings of two people, by id."""
BY_ID = {id: tuple(map(float, values)) for id, values in zip(IDS, RATINGS, strict=True)}


def write(folder: Path, text: str | bytes, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(folder: Path, head: str, *rows: str, name: str = "r.csv") -> Path:
    return write(folder, "\n".join([head, *rows]) + "\n", name)


def rated(path: Path, **options: Any) -> list[RatedItem]:
    return read_rated_items(str(path), **options)


def by_quality(items: Sequence[RatedItem]) -> dict[str, dict[str, tuple[float, ...]]]:
    names = dict.fromkeys(name for item in items for name in item.ratings)
    return {name: {item.id: tuple(item.ratings.get(name, ())) for item in items} for name in names}


def evaluators(path: Path) -> dict[str, list[float | None]]:
    return {column.evaluator: list(column.scores.values()) for column in read_score_file(path).columns}


# What a column is.


@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("word", ["N/A", "#DIV/0!", "NaN", "None", "inf", "-", "4_0", "1e5_0", "infinity", "٤", "0x1F", "1,5"])
def test_a_word_in_a_column_of_numbers_is_refused_wherever_it_stands(word: str, row: int, tmp_path: Path) -> None:
    """An N/A in the first row took the column away, and another one appeared under the file's name; 4_0 was 40."""
    cells = [".1", ".2", ".3"]
    cells[row] = f'"{word}"'
    path = table(tmp_path, "id,mine,other", *(f"{id},{cell},1" for id, cell in zip(IDS, cells, strict=False)))
    message = f"{path}:{row + 2}: mine: expected a finite number, got {word!r}. Leave the cell empty where there is none."
    with refused(message):
        read_score_file(path)
    with refused(message):
        rated(path)


def test_a_cell_with_an_image_is_not_quoted_whole(tmp_path: Path) -> None:
    path = table(tmp_path, "id,rating", "a,3", f"b,{'iVBORw0KGgo' * 300}")
    shown = ("iVBORw0KGgo" * 10)[:100]
    with refused(f"{path}:3: rating: expected a finite number, got '{shown}...'. Leave the cell empty where there is none."):
        rated(path)


def test_a_column_without_a_single_number_but_na_is_refused_too(tmp_path: Path) -> None:
    path = table(tmp_path, "id,mine,other", "a,N/A,1", "b,N/A,2")
    with refused(f"{path}:2: mine: expected a finite number, got 'N/A'. Leave the cell empty where there is none."):
        read_score_file(path)


def test_a_field_that_the_first_row_lacks_is_a_column(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "a", "x": 1}\n{"id": "b", "x": 2, "y": 3}\n', "s.jsonl")
    assert evaluators(path) == {"s:x": [1, 2], "s:y": [None, 3]}


def test_identifiers_times_and_texts_are_no_scores_and_no_ratings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """pandas' index and worker_id were evaluators with ranks, and qualities."""
    path = table(
        tmp_path,
        ",id,Unnamed: 0,worker_id,hit_id,AssignmentId,timestamp,created_at,lead_time,response,remark,empty,mine",
        *(f"{n},{id},{n},{n % 2},{n},{n},{1700 + n},{n},2.5,{n if n else 'No.'},{n if n == 1 else 'x'},,{n + 1}"
          for n, id in enumerate(IDS)),
    )  # fmt: skip
    message = f"{path}: not read as scores or ratings: 'remark', 'empty'. To use one, name it by --column or --quality"
    assert evaluators(path) == {"r": [1, 2, 3, 4, 5]}
    assert list(by_quality(rated(path))) == ["mine"]
    assert caplog.messages == [message, message]
    (asked,) = read_score_file(path, ["hit_id"]).columns
    assert list(asked.scores.values()) == [0, 1, 2, 3, 4]
    assert list(by_quality(rated(path, asked=["hit_id"]))) == ["hit_id"]
    assert [text for text in caplog.messages if "not read" in text] == [message, message]


@pytest.mark.parametrize(
    "name",
    ["dialogue", "dialogue_id", "dialog_id", "DialogueID", "conversation_id", "conversationId", "Conversation ID", "chat_id"],
)
def test_a_dialogue_is_known_by_the_names_that_it_has(name: str, tmp_path: Path) -> None:
    rows = [f"{id},{n // 2},{n + 1}" for n, id in enumerate(IDS)]
    items = rated(table(tmp_path, f"id,{name},rating", *rows))
    assert [item.cluster for item in items] == ["0", "0", "1", "1", "2"]
    assert list(by_quality(items)) == ["rating"]
    (one,) = align([table(tmp_path, f"id,{name},mine", *rows, name="s.csv")], AlignedScores(ratings=str(tmp_path / "r.csv")))
    assert one.clusters == ["0", "0", "1", "1", "2"]
    assert one.evaluator == "s"


def test_two_names_of_a_dialogue_have_to_mean_the_same(tmp_path: Path) -> None:
    head, rows = "id,conversation_id,dialog_id,rating", [f"{id},c{n // 2},d{n // 2},{n}" for n, id in enumerate(IDS)]
    assert rated(table(tmp_path, head, *rows))[0].cluster == "d0"
    for other in ("e,c2,d0,3", "e,c0,d2,3"):
        path = table(tmp_path, head, *rows[:-1], other)
        with refused(
            f"{path}: 'dialog_id' and 'conversation_id' say in two ways which rows are of one dialogue. "
            "Call the one that is right 'dialogue'."
        ):
            rated(path)


# Who rated.


@pytest.mark.parametrize(
    "names", ["rater1,rater2", "rater_a,rater_b", "Annotator 1,Annotator 2", "worker1,worker2", "human1,human2"]
)
def test_columns_of_people_are_raters_of_one_quality(names: str, tmp_path: Path) -> None:
    path = table(tmp_path, f"id,{names}", *(f"{id},{first},{second}" for id, (first, second) in zip(IDS, RATINGS, strict=True)))
    assert by_quality(rated(path)) == {"rating": BY_ID}


@pytest.mark.parametrize("form", ["{0}_rater{1}", "rater{1}_{0}"])
def test_columns_of_people_may_name_a_quality(form: str, tmp_path: Path) -> None:
    names = [form.format(quality, rater) for quality in ("warm", "clear") for rater in (1, 2)]
    path = table(tmp_path, ",".join(["id", *names]), *(f"{id},{a},{b},1,2" for id, (a, b) in zip(IDS, RATINGS, strict=True)))
    assert by_quality(rated(path)) == {"warm": BY_ID, "clear": dict.fromkeys(IDS, (1.0, 2.0))}


@pytest.mark.parametrize("name", ["rating", "score", "judge"])
def test_columns_that_may_be_raters_or_qualities_ask_for_an_option(name: str, tmp_path: Path) -> None:
    first, second = f"{name}1", f"{name}2"
    path = table(tmp_path, f"id,{first},{second}", *(f"{id},{a},{b}" for id, (a, b) in zip(IDS, RATINGS, strict=True)))
    with refused(
        f"{path}: {first}, {second} may be raters of one quality, or qualities. "
        f"Say --raters {first},{second}, or name the qualities with --quality, or --quality all."
    ):
        rated(path)
    assert by_quality(rated(path, raters=[first, second])) == {"rating": BY_ID}
    assert list(by_quality(rated(path, asked=["all"]))) == [first, second]
    assert list(by_quality(rated(path, asked=[second]))) == [second]
    with refused(f"--raters: {path} has no column 'rater'. Known are: id, {first}, {second}."):
        rated(path, raters=["rater"])
    with refused(f"{path}: --rating-column and --raters both say where the ratings are. Leave one of them out."):
        read_score_file(path, rating_column=first, raters=[second])


def test_lists_of_ratings_leave_nothing_unclear(tmp_path: Path) -> None:
    rows = [{"id": id, "ratings": {"warm": list(values)}, "score1": 1, "score2": 2} for id, values in BY_ID.items()]
    assert by_quality(rated(write(tmp_path, json.dumps(rows), "r.json"))) == {"warm": BY_ID}


def test_who_gave_a_rating_is_known_where_an_earlier_one_is_missing(tmp_path: Path) -> None:
    """Without the second person's rating, the third person's was in the second place."""
    path = table(tmp_path, "id,rater1,rater2,rater3", "a,1,2,3", "b,4,,5")
    first, second = rated(path)
    assert (first.ratings, first.people) == ({"rating": (1, 2, 3)}, {"rating": ("rater1", "rater2", "rater3")})
    assert (second.ratings, second.people) == ({"rating": (4, 5)}, {"rating": ("rater1", "rater3")})
    by_row = rated(table(tmp_path, "id,rater,good,kind", "a,ann,1,2", "b,bob,3,", "a,bob,4,5"))
    assert [item.people for item in by_row] == [
        {"good": ("ann", "bob"), "kind": ("ann", "bob")},
        {"good": ("bob",), "kind": ()},
    ]
    assert [item.people for item in rated(table(tmp_path, "id,good,kind", "a,1,2"))] == [{}]


def test_raters_beside_scores_are_no_evaluators(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path, "id,mine,rater1,rater2", *(f"{id},.{a},{a},{b}" for id, (a, b) in zip(IDS, RATINGS, strict=True)))
    columns, ratings = read_score_file(path, raters=["rater1", "rater2"])
    assert [column.evaluator for column in columns] == ["r"]
    assert ratings is not None
    assert by_quality(ratings) == {"rating": BY_ID}
    assert caplog.messages == []
    assert [column.evaluator for column in read_score_file(path, rating_column="rater1").columns] == ["r"]
    assert caplog.messages == [f"{path}: not read as scores or ratings: 'rater2'. To use one, name it by --column or --quality"]


def test_an_id_may_have_a_row_a_person(tmp_path: Path) -> None:
    rows = [f"{id},w{n},{value}" for id, values in BY_ID.items() for n, value in enumerate(values)]
    path = table(tmp_path, "id,worker_id,rating", *rows)
    assert by_quality(rated(path)) == {"rating": BY_ID}
    table(tmp_path, "id,worker_id,rating", *rows, "a,w0,3")
    with refused(f"{path}: the id 'a' occurs twice by 'w0'. Give every response its own."):
        rated(path)


@pytest.mark.parametrize(("mark", "low"), [(0, 1), (-1, 0), (99, 1)])
def test_a_number_off_the_scale_may_stand_for_no_rating(
    mark: int, low: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(tmp_path, "id,rating", f"a,{mark}", f"b,{mark}", f"c,{low}", "d,5", "e,2")
    rated(path)
    assert caplog.messages == [
        f"{path}: rating: 2 of 5 ratings are {mark}, and the others are on a scale of {low} to 5. "
        f"If it stands for no rating, leave the cell empty, or count only the others by --within {low} 5"
    ]
    caplog.clear()
    for values in ((0, 1, 2, 1, 0), (0, 1, 1, 1, 0), (1, 2, 3, 4, 5), (0, 20, 80, 99, 50)):
        rated(table(tmp_path, "id,rating", *(f"{id},{value}" for id, value in zip(IDS, values, strict=True))))
    assert caplog.messages == []


# How tables are written.

SEMICOLONS = "id;warm;remark\na;1,5;x, y\nb;-0,25;1,5\nc;3;\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", SEMICOLONS),
        ("r.csv", SEMICOLONS.replace("\n", "\r\n").encode("utf-8-sig")),
        ("r.csv", "sep=;\r\n" + SEMICOLONS),
        ("r.CSV", SEMICOLONS),
        ("r.tsv", SEMICOLONS.replace(";", "\t")),
        ("r.TSV", SEMICOLONS.replace(";", "\t")),
        ("r.csv", SEMICOLONS.replace(";", "\t")),
        ("r.csv", "\n" + SEMICOLONS),
        ("r.csv", SEMICOLONS.replace("remark", '"remark, if any"')),
        ("r.tsv", 'id,warm,remark\na,1.5,"x, y"\nb,-0.25,"1,5"\nc,3,\n'),
    ],
)
def test_spreadsheets_of_other_countries(name: str, text: str | bytes, tmp_path: Path) -> None:
    path = write(tmp_path, text, name)
    assert by_quality(rated(path)) == {"warm": {"a": (1.5,), "b": (-0.25,), "c": (3.0,)}}
    assert evaluators(path) == {"r": [1.5, -0.25, 3]}


def test_a_column_of_numbers_with_commas_alone_is_none_of_texts(tmp_path: Path) -> None:
    """A sheet of another country's, saved with commas: another column's numbers were compared in its place."""
    path = table(tmp_path, "id,quality,words", 'a,"0,5",3', 'b,"0,7",4')
    with refused(f"{path}:2: quality: expected a finite number, got '0,5'. Leave the cell empty where there is none."):
        read_score_file(path)
    with refused(f"{path}: has several columns of numbers: quality, words. Name one with --column."):
        read_scored_rows(path)


def test_decimal_commas_are_not_read_where_a_comma_may_mean_something_else(tmp_path: Path) -> None:
    """1,234 between commas may be a thousand."""
    path = table(tmp_path, "id,warm", 'a,"1,234"', 'b,"2,5"', "c,3")
    with refused(f"{path}:2: warm: expected a finite number, got '1,234'. Leave the cell empty where there is none."):
        rated(path, asked=["warm"])
    path = table(tmp_path, "id;warm", "a;1.5", "b;2,5")
    with refused(f"{path}:3: warm: expected a finite number, got '2,5'. Leave the cell empty where there is none."):
        rated(path)


@pytest.mark.parametrize("read", [rated, read_score_file])
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.xlsx", b"PK\x03\x04\xff", ": a file of this kind is not read here. Save it as CSV (UTF-8), or as JSON lines."),
        ("r.csv", "id,rating\n".encode("utf-16-le"),
         ": is no text. Unpack it, or save it as JSON lines, CSV (UTF-8) or Parquet."),
        ("r.csv", "id,r\n\xe9,1\n".encode("cp1252"), ":2: byte 5 is not UTF-8. Convert the file to UTF-8."),
        ("r.json", '{"id": {"0": "a"}, "rating": {"0": 5}}',
         ": is one object, as pandas' to_json writes. Write the rows, by to_json(orient='records')."),
        ("r.json", '{"columns": ["id", "rating"], "index": [0], "data": [["a", 5]]}',
         ": is one object, as pandas' to_json writes. Write the rows, by to_json(orient='records')."),
    ],
)  # fmt: skip
def test_what_is_not_read_says_what_to_do(read: Any, name: str, text: str | bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text, name)
    with refused(f"{path}{message}"):
        read(path)


def test_rows_of_pandas(tmp_path: Path) -> None:
    rows = [
        {"id": id, "warm": first, "clear": second, "level": "turn"} for id, (first, second) in zip(IDS, RATINGS, strict=True)
    ]
    found = by_quality(rated(write(tmp_path, json.dumps(rows), "r.json")))
    assert found == by_quality(rated(write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "r.jsonl")))
    assert found["warm"] == {id: (float(first),) for id, (first, _) in zip(IDS, RATINGS, strict=True)}
    assert list(found) == ["warm", "clear"]


def test_a_table_that_is_scored_is_a_table_of_ratings(tmp_path: Path) -> None:
    """Its texts were refused as ratings; now they say which rows answer one context, and how long the responses are."""
    path = table(tmp_path, "context,response,comment,rating", "Hi.,Hello you,fine,5", "Hi.,42,10,2", "Bye.,See you all,,4")
    items = rated(path)
    assert [(item.id, item.words, dict(item.ratings)) for item in items] == [
        ("0", 2, {"rating": (5.0,)}),
        ("1", 1, {"rating": (2.0,)}),
        ("2", 3, {"rating": (4.0,)}),
    ]
    assert items[0].item == items[1].item != items[2].item
    assert items[0].cluster == items[1].cluster != items[2].cluster
    path = table(tmp_path, "id,context,response,dialogue,item,rating", "a,Hi.,Hello,d1,i1,5", "a,Hi.,Hello,d1,i1,5")
    with refused(f"{path}: the id 'a' occurs twice. Give every response its own."):
        rated(path)
    (one,) = rated(
        table(tmp_path, "id,context,response,dialogue,item,rater,rating", *(f"a,Hi.,Hey,d1,i1,{n},{n}" for n in (1, 2)))
    )
    assert (one.cluster, one.item, one.words, dict(one.ratings)) == ("d1", "i1", 1, {"rating": (1.0, 2.0)})


# What rating tools export.


def mturk(folder: Path, answers: Sequence[Mapping[str, object]], status: str = "Approved") -> Path:
    """The CSV of a batch: each of five HITs by two workers."""
    head = ["HITId", "HITTypeId", "Title", "Reward", "AssignmentId", "WorkerId", "AssignmentStatus", "AcceptTime"]
    head += ["WorkTimeInSeconds", "LifetimeApprovalRate", "Input.id", "Input.dialogue_id", "Input.response"]
    lines = [[*head, *answers[0]]]
    for n, own in enumerate(answers):
        id, worker = IDS[n // 2], "VW"[n % 2]
        row = [f"H{id}", "T", "Rate", "$0.05", f"A{n}", worker, status if n == 0 else "Approved", "Mon Dec 02"]
        lines.append([*row, 31 + n, "100% (3/3)", id, f"d{id}", "Hello.", *own.values()])
    quoted = (",".join('"' + str(cell).replace('"', '""') + '"' for cell in line) for line in lines)
    return write(folder, "\n".join(quoted) + "\n")


def answers_of(make: Any) -> list[dict[str, object]]:
    return [make(value) for values in RATINGS for value in values]


@pytest.mark.parametrize(
    "make",
    [
        lambda value: {"Answer.warm": value, "Answer.comment": "good"},
        lambda value: {f"Answer.warm.{level}": str(level == value).lower() for level in range(1, 6)},
        lambda value: {"Answer.taskAnswers": json.dumps([{"warm": {str(n): n == value for n in range(1, 6)}, "comment": ""}])},
        lambda value: {"Answer.taskAnswers": json.dumps([{"warm": str(value)}])},
    ],
)
def test_a_batch_of_mechanical_turk(make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = rated(mturk(tmp_path, answers_of(make)))
    assert by_quality(items) == {"warm": BY_ID}
    assert [item.cluster for item in items] == [f"d{id}" for id in IDS]
    assert caplog.messages == []
    path = mturk(tmp_path, answers_of(make), "Rejected")
    assert by_quality(rated(path)) == {"warm": BY_ID | {"a": (4.0,)}}
    assert caplog.messages == [f"{path}: 1 of 10 assignments were rejected, and are left out"]


def test_a_worker_who_chose_two_buttons_is_named(tmp_path: Path) -> None:
    path = mturk(tmp_path, answers_of(lambda _: {"Answer.warm.1": "true", "Answer.warm.2": "true"}))
    with refused(f"{path}:2: warm: several answers are chosen: 1, 2. Leave the cells empty, or mend the row."):
        rated(path)


def label_studio() -> list[dict[str, Any]]:
    def result(value: float) -> list[dict[str, object]]:
        return [{"from_name": "warm", "type": "rating", "value": {"rating": value}}]

    people = ({"email": "b@x", "id": 1}, 2)
    return [
        {
            "id": number,
            "data": {"id": id, "conversation": f"d{id}"},
            "annotations": [
                {"completed_by": 3, "was_cancelled": True, "result": []},
                *({"completed_by": who, "result": result(value)} for who, value in zip(people, BY_ID[id], strict=True)),
            ],
            "predictions": [],
        }
        for number, id in enumerate(IDS)
    ]


def argilla(shape: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for id, values in BY_ID.items():
        said = [{"user_id": f"u{place}", "value": value} for place, value in enumerate(values)]
        if shape == "users":
            responses: Any = [
                *(
                    {"user_id": one["user_id"], "status": "submitted", "values": {"warm": {"value": one["value"]}}}
                    for one in said
                ),
                {"user_id": "u9", "status": "discarded", "values": {"warm": {"value": 1}}},
            ]
            rows.append({"external_id": id, "fields": {"text": "x"}, "responses": responses})
        elif shape == "questions":
            said.append({"user_id": "u9", "value": 1, "status": "draft"})
            rows.append({"id": id, "fields": {"text": "x"}, "responses": {"warm": said}, "metadata": {}})
        else:
            users = [*(one["user_id"] for one in said), "u9"]
            status = ["submitted", "submitted", "discarded"]
            cells = {"warm.responses": [*values, 1], "warm.responses.users": users, "warm.responses.status": status}
            rows.append({"id": id, "text": "x", **cells, "warm.suggestion": 3})
    return rows


@pytest.mark.parametrize(
    ("rows", "n_all"),
    [(label_studio(), 15), (argilla("users"), 15), (argilla("questions"), 15), (argilla("table"), 15)],
    ids=["Label Studio", "users", "questions", "table"],
)
def test_what_tools_for_labelling_nest_is_read(
    rows: list[dict[str, Any]], n_all: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was refused; what was cancelled, discarded or is a draft is left out and counted."""
    for text, name in ((json.dumps(rows), "r.json"), ("\n".join(map(json.dumps, rows)) + "\n", "r.jsonl")):
        path = write(tmp_path, text, name)
        caplog.clear()
        assert by_quality(rated(path)) == {"warm": BY_ID}
        assert caplog.messages[0] == f"{path}: 5 of {n_all} annotations were cancelled or not handed in, and are left out"


@pytest.mark.parametrize(("tool", "rows"), [("Label Studio", label_studio()), ("Argilla", argilla("questions"))])
def test_what_tools_nest_is_refused_with_the_way_out(tool: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """Where scores are expected."""
    path = write(tmp_path, json.dumps(rows), "r.json")
    with refused(
        f"{path}: is an export of {tool}. Write a row a person, with the columns id, rater, and one for each quality."
    ):
        read_score_file(path)


def test_scores_of_langfuse_are_those_that_people_gave(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        {"id": f"{id}{who}", "traceId": f"d{id}", "observationId": id, "name": "warm", "value": value, "dataType": "NUMERIC"}
        | {"source": "ANNOTATION", "authorUserId": str(who)}
        for id, values in BY_ID.items()
        for who, value in enumerate(values)
    ]
    rows.append({"id": "j", "traceId": "da", "observationId": "a", "name": "judge", "value": 0.5, "source": "EVAL"})
    for value in (rows, {"data": rows, "meta": {"page": 1}}):
        items = rated(path := write(tmp_path, json.dumps(value), "r.json"))
        assert by_quality(items) == {"warm": BY_ID}
        assert [item.cluster for item in items] == [f"d{id}" for id in IDS]
        assert caplog.messages[-1] == f"{path}: 1 of 11 scores are no person's, and are left out"


def test_two_scores_of_an_annotator_of_langfuse_are_of_one_response(tmp_path: Path) -> None:
    """The second was refused: the id occurs twice."""
    rows = [
        {"id": f"{id}{who}{name}", "traceId": id, "name": name, "value": value + shift}
        | {"source": "ANNOTATION", "authorUserId": str(who)}
        for name, shift in (("warm", 0), ("cold", 1))
        for id, values in BY_ID.items()
        for who, value in enumerate(values)
    ]
    path = write(tmp_path, json.dumps(rows), "r.json")
    colder = {id: tuple(value + 1 for value in values) for id, values in BY_ID.items()}
    assert by_quality(rated(path)) == {"warm": BY_ID, "cold": colder}
    path = write(tmp_path, json.dumps([rows[0], rows[0]]), "r.json")
    with refused(f"{path}: the id {IDS[0]!r} occurs twice by '0'. Give every response its own."):
        rated(path)


def test_ratings_of_parts_of_a_text_are_refused(tmp_path: Path) -> None:
    """Only the last of them was read."""
    rows = label_studio()
    rows[1]["annotations"][1]["result"] *= 2
    path = write(tmp_path, json.dumps(rows), "r.json")
    with refused(
        f"{path}:1: warm: one annotation has several answers, each about a part of the text. Make a task of each part."
    ):
        rated(path)


def test_an_export_that_is_not_as_its_tool_writes_it_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps([{"id": 1, "data": {"id": "a"}, "annotations": [{"result": [{"value": {}}]}]}]), "r.json")
    with refused(f"{path}: is not as Label Studio writes it. Export it again."):
        rated(path)


def test_a_table_of_label_studio(tmp_path: Path) -> None:
    """Choices are plain cells there, or JSON."""
    head = "annotation_id,annotator,created_at,id,lead_time,warm,text"
    for form in ("{:g}", '"[{{""rating"":{:g}}}]"'):
        rows = [
            f"{n},{n},2021,{id},4.2,{form.format(value)},Hello."
            for id, values in BY_ID.items()
            for n, value in enumerate(values)
        ]
        assert by_quality(rated(table(tmp_path, head, *rows))) == {"warm": BY_ID}
    path = table(tmp_path, head, '1,1,2021,a,4.2,"{""choices"":[""warm"",""cold""]}",Hello.')
    with refused(f"{path}:2: warm: several answers are chosen: warm, cold. Leave the cells empty, or mend the row."):
        rated(path)


def test_a_score_of_nothing_has_no_minus(tmp_path: Path) -> None:
    scores = write(tmp_path, '{"a": 0, "b": 0, "c": 0}', "s.json")
    ratings = table(tmp_path, "id,rating", "a,1", "b,2", "c,3")
    (one,) = align([scores], AlignedScores(ratings=str(ratings), lower=["s"]))
    assert list(map(str, one.scores)) == ["0.0", "0.0", "0.0"]
