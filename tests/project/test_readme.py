"""What README and the front page of the documentation show is what happens."""

import contextlib
import io
from pathlib import Path

import pytest
from readme import ten_lines

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_example_prints_what_the_page_says(page):
    code, shown = ten_lines(ROOT / page)
    assert len([line for line in code.splitlines() if line.strip()]) == 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().rstrip() == shown.rstrip()
