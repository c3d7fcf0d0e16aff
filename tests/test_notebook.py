"""HTML of results in notebooks: small, escaped, without colours."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import rankernel as rk

HOSTILE = '<script>alert("x")</script>'
BALLOTS = rk.Rankings.from_orders([[HOSTILE, "b"], ["b", HOSTILE], ["b"]], [HOSTILE, "b", "c"])
PREFS = rk.Preferences.from_pairs([[(HOSTILE, "b"), ("c", "d")]], users=[HOSTILE])
KERNEL = rk.Mallows(0.2)
THINGS = {
    "rankings": BALLOTS,
    "preferences": PREFS,
    "kernel": 0.5 * rk.Kendall() + KERNEL,
    "plan": KERNEL.plan(BALLOTS),
    "estimate": KERNEL.estimate(BALLOTS),
    "consensus": rk.borda(BALLOTS),
    "test": rk.mmd_test(BALLOTS, BALLOTS, KERNEL, n_permutations=20),
    "hsic": rk.hsic_test(rk.Rankings(np.tile(BALLOTS.ranks, (2, 1))), [0, 1] * 3, KERNEL, n_permutations=20),
}
THINGS["groups"] = rk.k_sample_test(BALLOTS, [HOSTILE, "y", "z"], KERNEL, n_permutations=20, biased=True)
THINGS["pairs"] = THINGS["groups"].pairwise()
THINGS["differences"] = THINGS["groups"].differences()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"style", "scope"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", THINGS)
def test_html_is_small_valid_and_escaped(name):
    html = THINGS[name]._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.seen <= {"div", "strong", "pre", "table", "tr", "th", "td"}
    assert len(html) < 5000 * max(html.count("<table"), 1)
    assert not re.search(r"#[0-9a-f]{3,6}|rgb|white|black", html.replace("&#x27;", ""))


def test_content():
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &gt; b" in BALLOTS._repr_html_()
    assert "1 (20 permutations)" in THINGS["test"]._repr_html_()
