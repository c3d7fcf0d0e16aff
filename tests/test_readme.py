"""What README shows is what happens."""

import contextlib
import io
from pathlib import Path

import pytest
from readme import ten_lines

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="README is not part of an installed package")
def test_the_example_prints_what_the_readme_says():
    code, shown = ten_lines(README)
    assert len([line for line in code.splitlines() if line.strip()]) == 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().rstrip() == shown.rstrip()
