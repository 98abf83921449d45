"""Plain tables: columns by usual names or the user's choice, faults named by line and field."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import ColumnMap, read_trials


def csv(*lines):
    return "\n".join(lines).encode()


def test_usual_names_are_found_whatever_their_case_and_spelling():
    trials = read_trials(csv("Agent Name,taskId,Run,isCorrect,latency-ms", "a,t,7,TRUE,1500"))
    trial = next(iter(trials))
    assert (trial.system, trial.task, trial.trial, trial.outcome.name) == ("a", "t", 7, "PASSED")
    assert trial.seconds == 1.5


def test_two_systems_in_one_file_stay_two():
    trials = read_trials(csv("model,task,passed", "a,t,1", "b,t,0"))
    assert trials.systems == ("a", "b")
    assert trials.tally("b").failed.tolist() == [1]


def test_a_file_without_system_is_named_after_itself_or_as_asked(tmp_path):
    path = tmp_path / "nightly.csv"
    path.write_bytes(csv("task,passed", "t,1"))
    assert read_trials(path).systems == ("nightly",)
    assert read_trials(path, mapping=ColumnMap(name="gpt-5")).systems == ("gpt-5",)


def test_one_name_cannot_merge_two_systems():
    table = csv("model,task,passed", "a,t,1", "b,t,0")
    with pytest.raises(ReadError, match=r'input: holds 2 agents \(a, b\); one name, "x", would'):
        read_trials(table, mapping=ColumnMap(name="x"))


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("PASS", "PASSED"),
        ("no", "FAILED"),
        ("0.0", "FAILED"),
        ("error", "ERRORED"),
        ("C", "PASSED"),
    ],
)
def test_outcomes_are_read_from_words(word, outcome):
    assert next(iter(read_trials(csv("task,status", f"t,{word}")))).outcome.name == outcome


def test_an_unknown_outcome_names_its_line_and_lists_what_was_seen():
    table = csv("task,result", "a,pass", "b,maybe", "c,fail")
    message = (
        r"input, line 3, column \"result\": 'maybe' does not say whether the trial passed\. "
        r"The column holds 'pass', 'maybe', 'fail'; say what passes with `pass_if"
    )
    with pytest.raises(ReadError, match=message):
        read_trials(table)
    judged = read_trials(table, mapping=ColumnMap(pass_if="result==maybe"))
    assert judged.outcome.tolist() == [0, 1, 0]


def test_a_missing_outcome_is_refused_and_an_error_explains_it():
    with pytest.raises(ReadError, match=r'input, line 3, column "passed": no outcome'):
        read_trials(csv("task,passed", "a,1", "a,"))
    trials = read_trials(csv("task,passed,error", "a,1,", "a,,timeout", "a,0,boom", "a,1,late"))
    assert [trial.outcome.name for trial in trials] == ["PASSED", "ERRORED", "ERRORED", "PASSED"]
    assert [trial.error for trial in trials] == [None, "timeout", "boom", "late"]


def test_a_score_alone_passes_at_one_and_that_is_said():
    trials = read_trials(csv("task,score", "a,1.0", "a,0.99"))
    assert trials.outcome.tolist() == [1, 0]
    assert 'a "score" of 1 passes' in trials.sources[0].notes[0]
    lenient = read_trials(
        csv("task,score", "a,1.0", "a,0.9"), mapping=ColumnMap(pass_if="score>=0.8")
    )
    assert lenient.outcome.tolist() == [1, 1]
    assert lenient.score.tolist() == [1.0, 0.9]


def test_columns_can_be_chosen_nested_and_joined():
    rows = [
        {"inputs": {"question": "q1"}, "suite": "s", "feedback": {"correct": True}, "lap": 3},
        {"inputs": {"question": "q2"}, "suite": "s", "feedback": {"correct": False}, "lap": 3},
    ]
    lines = b"\n".join(map(msgspec.json.encode, rows))
    mapping = ColumnMap(task="suite,inputs.question", passed="feedback.correct", trial="lap")
    trials = read_trials(lines, mapping=mapping)
    assert trials.tasks == ("s/q1", "s/q2")
    assert trials.outcome.tolist() == [1, 0]
    assert trials.trial.tolist() == [3, 3]


def test_an_export_without_usual_names_reads_by_its_own(samples):
    mapping = ColumnMap(task="Description", passed="Status", name="flaky-js")
    trials = read_trials(samples / "promptfoo" / "out.csv", mapping=mapping)
    tally = trials.tally("flaky-js")
    assert (tally.passed.sum(), tally.failed.sum(), tally.errored.sum()) == (17, 7, 1)
    assert tally.score_total.sum() == 17.5


def test_a_chosen_column_that_is_not_there_suggests_the_near_one():
    with pytest.raises(ReadError, match=r'has no column "qestion".*Did you mean "question"\?'):
        read_trials(csv("question,passed", "a,1"), mapping=ColumnMap(task="qestion"))


def test_a_file_nobody_knows_says_what_it_has_and_how_to_map_it():
    message = r"which columns\? It has x, y\. Say `task='x'` and `passed='y'`, or name the tool"
    with pytest.raises(ReadError, match=message):
        read_trials(csv("x,y", "paris,no"))
    with pytest.raises(ReadError, match="input: is empty"):
        read_trials(b"  \n ")


@pytest.mark.parametrize(
    "data",
    [b"\x00\x01\x02\x03", b"task,passed\na,1\n\x00\x00", b"\x89PNG\r\n\x1a\n", b"\x7fELF\x02\xff"],
)
def test_a_binary_file_is_said_to_be_one(data):
    for mapping in (ColumnMap(), ColumnMap(task="task")):
        with pytest.raises(ReadError, match=r"input: is a binary file that passhat cannot read$"):
            read_trials(data, mapping=mapping)


def test_text_with_colours_is_no_binary_file():
    assert len(read_trials(b"task,passed,said\na,1,\x1b[31mred\x1b[0m\n")) == 1


def test_a_file_of_nothing_but_a_byte_order_mark_is_refused():
    for name in (None, "table"):
        with pytest.raises(ReadError, match="input: is empty"):
            read_trials(b"\xff\xfe", format=name)


NAMES = st.text("abc éüßñà", min_size=1, max_size=6).filter(str.strip)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "bom-1252"]
)
@pytest.mark.parametrize("ending", [".csv", ".md", ".json"])
@settings(max_examples=20)
@given(rows=st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=8))
def test_a_table_says_the_same_in_every_encoding(tmp_path_factory, encoding, ending, rows):
    cells = [(name.strip(), int(passed)) for name, passed in rows]
    text = {
        ".csv": "task,passed\n" + "".join(f"{task},{passed}\n" for task, passed in cells),
        ".md": "| task | passed |\n|---|---|\n"
        + "".join(f"| {task} | {passed} |\n" for task, passed in cells),
        ".json": json.dumps(
            [{"task": task, "passed": passed} for task, passed in cells], ensure_ascii=False
        ),
    }[ending]
    path = tmp_path_factory.mktemp("encoded") / f"results{ending}"
    marked, encoding = encoding == "bom-1252", encoding.replace("bom-", "cp")
    path.write_bytes(b"\xef\xbb\xbf" * marked + text.encode(encoding))
    if encoding == "cp1252" and ending == ".json" and not text.isascii():
        with pytest.raises(ReadError, match=r"not text in UTF-8 \(byte [\d,]+\); save it as UTF-8"):
            read_trials(path)
        return
    trials = read_trials(path)
    assert list(trials.task.texts()) == [task for task, _ in cells]
    assert trials.outcome.tolist() == [passed for _, passed in cells]
    guessed = encoding == "cp1252" and not text.isascii()
    assert any("read as Windows-1252" in note for note in trials.sources[0].notes) == guessed


def test_damaged_utf8_is_refused_with_its_line_and_not_taken_for_another_encoding():
    text = "task,passed\nzürich,1\nköln,1\ncafé,0\n".encode()
    with pytest.raises(ReadError, match=r"input, line 4: not text in UTF-8 \(byte 33\)"):
        read_trials(text.replace("é".encode(), b"\xc3"))


ABOVE = [
    *("sep=;\n", "# made by hand; 2026\n", "# one\n#two\n", "My results;;\n\n", ""),
    *("# a; comment; as wide\n", "sep=;\n# a note\n", '# a "quote\n', "sep=;\n# as; wide; too\n"),
]


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("files", [1, 5])
def test_what_stands_above_the_header_is_no_trial_however_many_files_there_are(
    tmp_path, above, files
):
    for n in range(files):
        (tmp_path / f"r{n}.csv").write_text(f"{above}task;passed;note\nt{n};1;x\nu{n};0;y\n")
    trials = read_trials(tmp_path, mapping=ColumnMap(name="agent"))
    assert set(trials.tasks) == {f"{letter}{n}" for letter in "tu" for n in range(files)}
    assert (trials.outcome == 1).sum() == files


def test_a_line_with_a_number_sign_is_a_header_where_the_rows_have_as_many_cells():
    assert read_trials(b"#,task,passed\n1,a,1\n2,b,0\n").tasks == ("a", "b")
    assert read_trials(b'#,task,"a, b",passed\n1,a,x,1\n2,b,x,0\n').tasks == ("a", "b")
    assert read_trials(b"# task,passed\na,1\nb,0\n").tasks == ("a", "b")  # as numpy writes it
    assert read_trials(b"# of calls,task,passed\n3,a,1\n2,b,0\n").tasks == ("a", "b")
    with pytest.raises(ReadError, match=r"input, line 4, column \"passed\": 'maybe'"):
        read_trials(b"# by hand\ntask,passed\na,1\nb,maybe\n")


def test_a_table_that_says_half_says_which_half_is_missing():
    with pytest.raises(
        ReadError,
        match=r"input: no column says whether a trial passed; say `passed='answer'`, "
        r"`score=COLUMN` or `pass_if='COLUMN>=0\.8'`\. It has the columns task, answer$",
    ):
        read_trials(csv("task,answer", "a,1"))
    with pytest.raises(
        ReadError,
        match=r"input: no column says which task a row is about; say `task='Frage'`\. "
        r"It has the columns Frage, passed$",
    ):
        read_trials(csv("Frage,passed", "a,1"))


RIDDLES = {
    "Question": ["q1", "q1", "q2", "q2"],
    "attempt": [1, 2, 1, 2],
    "judge_verdict": ["yes", "no", "yes", "yes"],
    "human": ["yes", "", "", "no"],
    "bot": ["a", "a", "a", "a"],
}


def riddles(**renamed):
    names = [renamed.get(name, name) for name in RIDDLES]
    return csv(
        ",".join(names), *(",".join(map(str, row)) for row in zip(*RIDDLES.values(), strict=True))
    )


@pytest.mark.parametrize(
    "named",
    [{}, {"system": "bot"}, {"passed": "ok"}, {"human_labels": "human"}, {"trial": "number"}],
)
def test_a_table_that_is_read_without_options_is_read_with_one_more_column_named(named):
    trials = read_trials(riddles(judge_verdict="ok", attempt="number"), **named)
    assert trials.tasks == ("q1", "q2")
    assert trials.outcome.tolist() == [1, 0, 1, 1]


def test_an_error_about_columns_offers_those_whose_cells_fit():
    with pytest.raises(ReadError, match=r"Say `task='Question'` and `passed='judge_verdict'`, or"):
        read_trials(riddles())
    with pytest.raises(ReadError, match=r"whether a trial passed; say `passed='judge_verdict'`"):
        read_trials(riddles(), system="bot")
    with pytest.raises(ReadError, match=r"which task a row is about; say `task='Riddle'`"):
        read_trials(riddles(Question="Riddle"), passed="judge_verdict")


def test_a_column_of_verdicts_for_some_rows_is_offered_as_labels():
    (note,) = read_trials(riddles(), passed="judge_verdict").sources[0].notes
    assert "a person's verdicts with `human_labels='human'`" in note
    notes = read_trials(riddles(), passed="judge_verdict", human_labels="human").sources[0].notes
    assert not any("person's verdicts" in note for note in notes)


def test_columns_left_aside_are_named_where_one_may_tell_pooled_trials_apart():
    def notes(*lines, **mapping):
        return read_trials(csv(*lines), mapping=ColumnMap(**mapping)).sources[0].notes

    odd = ("Frage,Versuch,Agent X,Note (0-1)", "f,1,a,0.9", "f,1,b,0.2")
    (note,) = notes(*odd, task="Frage", pass_if="Note (0-1)>=0.5")
    assert note == (
        "columns not used: Versuch, Agent X (name the agent's with `system=COLUMN`, the "
        "trial's with `trial=COLUMN`)"
    )
    assert (
        notes(*odd, task="Frage", trial="Versuch", system="Agent X", pass_if="Note (0-1)>=0.5")
        == ()
    )
    repeated = ("task,passed,who", "f,1,a", "f,0,b")
    assert notes(*repeated)[0].startswith("columns not used: who (name the agent's")
    assert notes("task,passed,trial,who", "f,1,1,a", "f,0,2,b") == ()
    assert notes("task,passed,who", "f,1,a", "g,0,b") == ()


def test_a_chosen_column_may_be_absent_from_the_first_entries():
    lines = b'{"task": "a", "ok": 1}\n{"task": "a", "ok": 0, "why": "timeout"}\n'
    trials = read_trials(lines, mapping=ColumnMap(passed="ok", error="why"))
    assert [trial.outcome.name for trial in trials] == ["PASSED", "ERRORED"]


def test_ragged_lines_bad_numbers_and_repeated_columns_are_named():
    with pytest.raises(ReadError, match=r"input, line 3: has 3 cells where the header has 2"):
        read_trials(csv("task,passed", "a,1", "a,1,2"))
    with pytest.raises(ReadError, match=r"line 2, field cost: must be a number or empty, got 'x'"):
        read_trials(csv("task,passed,cost", "a,1,x"))
    with pytest.raises(ReadError, match=r"line 2, field seconds: must be at least 0, got -1"):
        read_trials(csv("task,passed,seconds", "a,1,-1"))
    with pytest.raises(ReadError, match=r"line 3, field task: the task is missing"):
        read_trials(csv("task,passed", "a,1", ",1"))
    with pytest.raises(ReadError, match=r"line 1: the column task occurs twice"):
        read_trials(csv("task,task,passed", "a,a,1"))
    with pytest.raises(ReadError, match=r"line 2, field score: must lie in \[0, 1\], got 7"):
        read_trials(csv("task,score", "a,7"))
    with pytest.raises(ReadError, match=r"line 2, field seed: must be a whole number below"):
        read_trials(csv("task,passed,seed", "a,1,1.5"))


def test_trials_are_whole_numbers_or_numbered_names_or_names():
    def trials_of(*names):
        return read_trials(
            csv("task,run,passed", *(f"t,{name},1" for name in names))
        ).trial.tolist()

    assert trials_of("4", "9") == [4, 9]
    assert trials_of("run-3", "run-12") == [3, 12]
    assert trials_of("blue", "red") == [0, 1]
    with pytest.raises(
        ReadError, match=r"1 trial occurs more than once: input / t / line 2, line 3"
    ):
        trials_of("blue", "blue")


def test_rows_that_say_nothing_and_rows_that_come_twice_are_told_in_one_go():
    rows = ["t,1,yes", "t,2,", "t,3,timeout", "t,1,yes"]
    told = r"line 3.*missing.*Also line 4 \('timeout'\).*error_words.* line 2 = line 5; see `dup"
    with pytest.raises(ReadError, match=told):
        read_trials(csv("task,run,passed", *rows))


def test_tags_are_words_of_a_list_or_one_word_of_a_category():
    trials = read_trials(csv("task,passed,tags", 'a,1,"x, y"', 'b,1,"[""p,q""]"', "c,1,"))
    assert [trial.tags for trial in trials] == [("x", "y"), ("p,q",), ()]
    assert read_trials(csv("task,passed,service", "a,1,my service")).words("tags") == (
        "my service",
    )


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_other_separators_and_a_byte_order_mark_are_seen(separator):
    text = separator.join(["task", "passed"]) + "\n" + separator.join(["a", "1"])
    assert read_trials(text.encode("utf-8-sig")).tasks == ("a",)


def test_json_comes_as_a_list_or_inside_an_object_whose_words_hold_for_every_row():
    rows = [{"task": "a", "passed": True}, {"task": "a", "passed": False}]
    for whole in (rows, {"agent": "me", "runs": rows}):
        assert read_trials(msgspec.json.encode(whole)).tally().passed.tolist() == [1]
    assert read_trials(msgspec.json.encode({"agent": "me", "runs": rows})).systems == ("me",)


def test_not_a_number_as_python_writes_it_is_read_and_kept_inside_texts():
    table = b'[{"task": "NaN,", "score": NaN, "error": "x"}, {"task": "b", "score": 0.5}]'
    trials = read_trials(table)
    assert trials.tasks == ("NaN,", "b")
    assert trials.outcome.tolist() == [2, 0]


def test_broken_json_names_the_file_line_and_place():
    with pytest.raises(ReadError, match=r"input, line 2: not valid JSON"):
        read_trials(b'{"task": "a", "passed": true}\n{"task": "b", "passed": }\n')
    with pytest.raises(ReadError, match=r"input: not valid JSON at column 27 \(.*tru}"):
        read_trials(b'[{"task": "a", "passed": tru}]')
    with pytest.raises(ReadError, match=r"input, line 3: not valid JSON at column 26 \("):
        read_trials(b'[{"task": "a",\n "passed": 1},\n{"task": "a", "passed": tru}]\n\n')
    with pytest.raises(ReadError, match=r"line 2: .*column 28 \(trailing comma in array, at .*,]'"):
        read_trials(b'[{"task": "a", "passed": 1},\n{"task": "a", "passed": 1},]')
    for printed in (b"{'task': 'a', 'passed': True}\n", b'{"task": "a", "passed": True}\n'):
        with pytest.raises(ReadError, match=r"as Python prints it: write it with json\.dumps"):
            read_trials(printed * 2)


def test_json_that_ends_in_the_middle_says_where_and_asks_why():
    whole = b'[{"task": "a",\n "passed": true},\n{"task": "b", "passed": true}]'
    message = (
        r"input, line 3: not valid JSON: it ends in the middle, after 50 bytes; was its writer"
    )
    with pytest.raises(ReadError, match=message):
        read_trials(whole[:50])
    lines = b'{"task": "a", "passed": true}\n{"task": "b", "pas\n'
    with pytest.raises(ReadError, match=r"input, line 2: not valid JSON: it ends in the middle"):
        read_trials(lines)


@pytest.mark.parametrize(
    "text", ["__import__('os').system('x')", "score>=", "score", "score>=high", "a b c"]
)
def test_a_pass_if_is_comparisons_and_nothing_else(text):
    with pytest.raises(
        ArgumentError, match=r"^pass_if (must be comparisons|can compare with a word)"
    ):
        read_trials(csv("task,score", "a,1"), mapping=ColumnMap(pass_if=text))


def test_a_pass_if_of_several_comparisons_needs_all():
    table = csv("task,score,turns,state", "a,0.9,3,done", "a,0.9,30,done", "a,0.9,3,open")
    mapping = ColumnMap(pass_if="score>=0.8 and turns<10 and state!=open")
    assert read_trials(table, mapping=mapping).outcome.tolist() == [1, 0, 0]
    with pytest.raises(ReadError, match=r"line 2: `pass_if` compares with a number, but state is"):
        read_trials(table, mapping=ColumnMap(pass_if="state>=1"))
    with pytest.raises(ReadError, match=r'has no column "ghost" for `pass_if`; it has task'):
        read_trials(table, mapping=ColumnMap(pass_if="ghost>=1"))


def test_empty_lines_are_no_rows_wherever_they_are():
    trials = read_trials(csv("", "", "task,passed", "a,1", "", "a,0", ""))
    assert trials.tally().passed.tolist() == [1]
    assert trials.tally().failed.tolist() == [1]
