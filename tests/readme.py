"""What README shows; needs nothing but Python, because it is also run where nothing else is installed."""

import re
from pathlib import Path


def ten_lines(path: Path) -> tuple[str, str]:
    """Return the one example and what it is said to print."""
    text = path.read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    return code, shown
