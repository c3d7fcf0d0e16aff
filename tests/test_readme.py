"""What README shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="README is not part of an installed package")
def test_the_example_prints_what_the_readme_says():
    text = README.read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().rstrip() == shown.rstrip()
