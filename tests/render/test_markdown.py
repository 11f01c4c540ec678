"""The comment: valid, bounded, and indifferent to what its texts try."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.model.verdict import Claim, Decision, ReasonCode, Verdict
from ci_gate.render.markdown import DROP_ORDER, SMALLEST_LIMIT, markdown
from ci_gate.render.view import view
from tests.render import samples
from tests.render.github_like import rendered
from tests.render.nasty import NASTY, outside_code, skeleton, tags, text_of
from tests.render.samples import task, verdict
from tests.speeds import examples, slow

UNLIMITED = 10**9


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (samples.green(), "## ✅ Passed: `refund-desk`"),
        (samples.red_by_task(), "## ❌ Regressed: `refund-desk`"),
        (samples.inconclusive(), "## ⚠️ Inconclusive: `refund-desk`"),
        (samples.no_baseline(), "## ✅ Passed: `refund-desk` (no baseline yet)"),
    ],
)
def test_verdict_is_in_the_first_line(made: Verdict, line: str) -> None:
    """The first line says the verdict and the suite."""
    assert markdown(view([made])).splitlines()[0] == line


def test_several_suites_have_an_overview_and_a_part_each() -> None:
    """A report on several suites begins with the worst verdict and a table of all."""
    report = markdown(view(samples.several()))

    headings = [line for line in report.splitlines() if line.startswith("## ")]
    assert headings == [
        "## ❌ Regressed: 1 of 3 suites",
        "## ❌ Regressed: `refund-desk`",
        "## ✅ Passed: `lookup`",
        "## ✅ Passed: `onboarding` (no baseline yet)",
    ]


def test_every_table_is_one() -> None:
    """Each row of each table has the cells of its head, in the HTML that GitHub shows."""
    page = rendered(markdown(view([samples.red_by_task()])))

    tables = re.findall(r"<table>.*?</table>", page, flags=re.DOTALL)
    assert tables
    for shown in map(str, tables):
        cells = [
            len(re.findall("<t[hd]", row)) for row in re.findall("<tr>(.*?)</tr>", shown, re.DOTALL)
        ]
        assert len(set(cells)) == 1
    assert "|" not in text_of(page)


def test_commands_can_be_copied() -> None:
    """The replay commands stand in a block of code, one a line, as the verdict has them."""
    page = rendered(markdown(view([samples.red_by_task()])))

    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    assert blocks[1] == "".join(f"ci-gate replay refund-4817 --trial {n}\n" for n in (1, 2, 5, 6))


def test_the_difference_of_a_failing_trial_stands_beside_its_command() -> None:
    """What the trial left is a block of text with the trial and its seed, cut where it is long."""
    detail = "\n".join(["state: check 1", *(f"+ id={n}" for n in range(30))])
    task = samples.task("refund", Claim.REGRESSED, failing=[3], detail=detail)
    report = markdown(view([samples.verdict(Decision.REGRESSED, tasks=[task])]))

    lines = report.splitlines()
    at = lines.index("```diff")
    assert lines[at - 2] == "Trial 3, seed `0x0000000258fbf6d4`:"
    assert lines[at + 1 : at + 3] == ["state: check 1", "+ id=0"]
    assert lines[at + 17 : at + 19] == ["  ... and 15 lines more", "```"]


def test_hostile_report_has_only_the_elements_of_a_report() -> None:
    """No link, image, script or other element comes out of a text from outside."""
    page = rendered(markdown(view([samples.hostile()]), limit=UNLIMITED))

    assert tags(page) == {
        *("h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "br", "sub"),
        *("details", "summary", "b", "pre", "code", "span"),
    }
    assert not re.search(r"@\w|#\d|(?i:\bgh-\d)|://|(?i:www\.)", outside_code(page))


@settings(max_examples=examples(40))
@given(NASTY.filter(lambda text: text.strip() not in {"", "baseline", "candidate"}))
def test_texts_do_not_change_the_shape_of_a_report(text: str) -> None:
    """Whatever a text says, the report has the elements it has with a tame one, in their order."""
    hostile = rendered(markdown(view([samples.hostile([text])]), limit=UNLIMITED))
    tame = rendered(markdown(view([samples.hostile(["tame"])]), limit=UNLIMITED))

    assert [tag for tag in skeleton(hostile) if tag not in {"pre", "/pre"}] == [
        tag for tag in skeleton(tame) if tag not in {"pre", "/pre"}
    ]


@settings(max_examples=examples(40))
@given(NASTY)
def test_no_line_is_a_command_to_a_log(text: str) -> None:
    """A report that is printed in a log starts no workflow command and holds no control."""
    report = markdown(view([samples.hostile([text])]), limit=UNLIMITED)

    for line in report.splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
        assert line.replace("\N{NO-BREAK SPACE}", "").isprintable()


def test_text_of_ten_megabytes_stays_small() -> None:
    """A reason, an id and a suite name of 10 MB leave a report of ordinary size."""
    made = samples.hostile(["x" * 10_000_000])

    assert len(markdown(view([made]))) < 20_000


@pytest.mark.parametrize("limit", [60_000, *slow(20_000, 6_000, 2_000), SMALLEST_LIMIT])
@pytest.mark.parametrize(
    "made",
    [[samples.huge(300)], [samples.hostile()], samples.several(), *slow([samples.hostile()] * 8)],
    ids=["huge", "hostile", "several", "many"],
)
def test_report_keeps_to_its_limit(made: list[Verdict], limit: int) -> None:
    """Bytes never exceed the limit, the verdict stays, and no table is cut."""
    report = markdown(view(made), limit=limit)

    assert len(report.encode()) <= limit
    assert report.startswith("## ❌ Regressed")
    _assert_whole(report)


def _assert_whole(report: str) -> None:
    """Every element that was opened is closed, every row has its cells, fences are pairs."""
    assert len(re.findall(r"^`{3,}", report, flags=re.MULTILINE)) % 2 == 0
    report = re.sub(r"^(`{3,})(?:sh|diff)$.*?^\1$", "", report, flags=re.MULTILINE | re.DOTALL)
    assert report.count("<details") == report.count("</details>")
    for lines in re.split(r"\n(?!\|)", report):
        rows = [line for line in lines.splitlines() if line.startswith("|")]
        assert len({row.count("|") - row.count("\\|") for row in rows}) <= 1


@settings(max_examples=examples(15))
@given(st.integers(SMALLEST_LIMIT, 70_000), st.integers(0, 40))
def test_four_byte_characters_count_as_four(limit: int, tasks: int) -> None:
    """The limit is one of bytes, also with characters of four bytes."""
    name = "\U0001f600" * 100
    red = [task(f"{name}{n}", Claim.REGRESSED, failing=range(8), reason=name) for n in range(tasks)]

    report = markdown(view([verdict(Decision.REGRESSED, tasks=red)]), limit=limit)

    assert len(report.encode()) <= limit


def test_limit_that_holds_no_verdict_is_refused() -> None:
    """A limit in which not even the verdict fits is a mistake of the caller."""
    with pytest.raises(ValueError, match="1000 bytes at least, the limit is 999"):
        markdown(view([samples.green()]), limit=999)


def test_sections_are_dropped_in_the_stated_order_and_named() -> None:
    """What explains the verdict least goes first, and the report says what went."""
    whole = markdown(view([samples.red_by_task()]), limit=UNLIMITED)

    report = markdown(view([samples.red_by_task()]), limit=len(whole.encode()) - 1)

    assert "Economics" not in report
    assert "Resilience" in report
    assert "Improvements" in report
    assert report.splitlines()[-1] == (
        f"> Left out to stay within {len(whole.encode()) - 1:,} bytes: economics. "
        "See the verdict file."
    )


def test_order_of_dropping_is_the_documented_one() -> None:
    """docs/report.md lists the sections in the order in which they are dropped."""
    text = Path(__file__).parents[2].joinpath("docs", "report.md").read_text(encoding="utf-8")

    _, part = text.split("## When it is too large")
    listed = re.findall(r"^\d+\. (.+)$", part, flags=re.MULTILINE)
    assert listed == list(DROP_ORDER)


@pytest.mark.slow
def test_five_thousand_regressions_are_limited_by_rows() -> None:
    """A section that is too long is shortened by rows, the worst first, and says how many more."""
    made = samples.huge(5000)
    worst = task("the-worst", Claim.REGRESSED, "32/32", "0/8", 0.0, adjusted=0.0, failing=[0])
    made = msgspec.structs.replace(made, tasks=(*made.tasks, worst))

    report = markdown(view([made]))

    assert len(report.encode()) <= 60_000
    assert "### Regressed tasks (5,001)" in report
    assert "| `the-worst` |" in report
    assert re.search(r"^and 4,\d\d\d more$", report, flags=re.MULTILINE)


def test_whole_report_says_nothing_of_dropping() -> None:
    """Where everything fits, nothing is said to be left out."""
    assert "Left out" not in markdown(view([samples.red_by_task()]))


def test_reason_with_a_command_shows_code() -> None:
    """A command in the sentence of a reason is set as code."""
    made = verdict(Decision.PASSED, {ReasonCode.NO_BASELINE: "run `ci-gate baseline update`"})

    assert "run `ci-gate baseline update`" in markdown(view([made]))
