"""How the page looks in a real browser: nothing clipped, no labels over each other, large enough, dark enough.

What is checked is in ``page_checks.js``; here are the data that make a page difficult, in every size it is seen in.
"""

from pathlib import Path

import numpy as np
import pytest
from browsing import Watched, open_browser
from real_data import needs_data, preflib

from rankernel import Preferences, Rankings, read
from rankernel.analysis.source import Source
from rankernel.analysis.summary import Settings, summarize
from rankernel.datasets import load_example, mallows, mixture
from rankernel.pages import report
from rankernel.pages.page import page as html_of

CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")
LONG = "Wilhelmina Featherstonehaugh-Cholmondeley"  # 41 characters
SEEN = {
    "1280 light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "1280 dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "390": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
REAL = [
    "00001-00000001.soi",
    "00002-00000001.soi",
    "00005-00000001.toi",
    "00006-00000001.toc",
    "00008-00000001.soi",
    "00021-00000001.toi",
    "00026-00000001.cat",
    "00028-00000001.soi",
    "00034-00000001.soi",
]


def shuffled(n_rankings, names, seed=0):
    return Rankings(np.argsort(np.random.default_rng(seed).random((n_rankings, len(names))), axis=1), names)


def two_camps(names, n_rankings=200):
    up = mallows(n_rankings // 2, len(names), 1.0, seed=0, items=names)
    down = mallows(n_rankings // 2, list(range(len(names)))[::-1], 1.0, seed=1, items=names)
    return Rankings(np.concatenate([up.ranks, down.ranks]), names)


def many_groups():
    rankings = two_camps(list("abcdefg"), 500)
    return Source(rankings, by="ward", groups=np.array([f"ward {row % 25 + 1}" for row in range(500)]))


def example():
    found = load_example()
    return Source(found.rankings, "Nowhere Bay", by="district", groups=found.districts, noun="candidate")


DIFFICULT = {
    "the bundled example": example,
    "names of 41 characters": lambda: Source(two_camps([f"{LONG} {n}" for n in range(9)]), f"{LONG} {LONG}"),
    "60 candidates": lambda: Source(shuffled(80, [f"candidate {n}" for n in range(60)])),
    "two candidates": lambda: Source(Rankings.from_orders([["yes", "no"], ["no", "yes"]], counts=[5, 4])),
    "one ballot": lambda: Source(Rankings.from_orders([["a", "b", "c"]])),
    "25 groups": many_groups,
    "pairs": lambda: Source(Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a")]] * 10)),
    "wide letters": lambda: Source(two_camps(["WWWWMMMMWWWW", "東京都千代田区永田町一丁目", "m" * 40, "i" * 40])),
}


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


def wrong_with(browser, source, path, **settings):
    """Return what is wrong with a page, in every size it is seen in."""
    path.write_text(html_of(summarize(source, Settings(n_permutations=99, **settings))), encoding="utf-8")
    found = {}
    for name, options in SEEN.items():
        with Watched(browser, path, **options) as watched:
            found[name] = watched.page.evaluate(CHECKS)
            for details in watched.page.locator("summary").all():
                details.click()
            found[f"{name}, opened"] = watched.page.evaluate(CHECKS)
            watched.assert_quiet()
    return {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_pages_look_well(name, browser, tmp_path):
    assert wrong_with(browser, DIFFICULT[name](), tmp_path / "page.html") == {}


def test_many_clusters_look_well(browser, tmp_path):
    rankings = mixture(300, [lambda n, seed: mallows(n, 8, 0.3, seed=seed)], seed=0).rankings
    assert wrong_with(browser, Source(rankings), tmp_path / "page.html", n_clusters=12) == {}


@needs_data
@pytest.mark.parametrize("name", REAL)
def test_real_files_look_well(name, browser, tmp_path):
    assert wrong_with(browser, Source(read(preflib(name)), name), tmp_path / "page.html") == {}


def test_the_checks_find_what_is_wrong(browser, tmp_path):
    """A check that cannot fail is none: each of these is one of the faults that are looked for."""
    broken = html_of(summarize(example(), Settings(n_permutations=9)))
    faults = {
        'class="lede"': ("font-size: 6px", "px high"),
        'class="kicker"': ("color: #ddd", "contrast"),
        'class="verdict"': ("width: 3000px; max-width: none", "sticks out of the page"),
    }
    for place, (style, wanted) in faults.items():
        path = tmp_path / "broken.html"
        # The policy would stop an inline style.
        written = broken.replace('http-equiv="Content-Security-Policy"', "", 1).replace(
            place, f'{place} style="{style}"', 1
        )
        path.write_text(written, encoding="utf-8")
        with Watched(browser, path, **SEEN["1280 light"]) as watched:
            assert any(wanted in fault for fault in watched.page.evaluate(CHECKS)), place


def test_no_colour_is_used_twice(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html_of(summarize(many_groups(), Settings(n_permutations=99))), encoding="utf-8")
    with Watched(browser, path, **SEEN["1280 light"]) as watched:
        watched.page.check("input[value=group]")
        colours = watched.page.evaluate(
            "[...document.querySelectorAll('.by-group-only .dot')].map(dot => getComputedStyle(dot).backgroundColor)"
        )
        assert len(colours) == len(set(colours))
        key = watched.page.locator(".by-group-only li").all_inner_texts()
    assert "others (18 groups)" in key
    wards = [int(line.split()[1]) for line in key if line.startswith("ward")]
    assert wards == sorted(wards)


def test_print_keeps_headings_with_what_follows_and_fills_its_pages(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html_of(summarize(example(), Settings(n_permutations=99))), encoding="utf-8")
    with Watched(browser, path, viewport={"width": 680, "height": 980}) as watched:
        watched.page.emulate_media(media="print")
        heights = watched.page.evaluate(
            "[...document.querySelectorAll('figure')].map(f => [f.dataset.name, f.getBoundingClientRect().height])"
        )
        # What cannot be divided is at most two thirds of a page: the rest of the page before it is never most of it.
        assert {name: round(height) for name, height in heights if height > 660} == {}
        assert watched.page.evaluate("getComputedStyle(document.querySelector('h2')).breakAfter") == "avoid"
        assert not watched.page.locator(".take").first.is_visible()
        watched.page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") <= 7


def test_pictures_stand_alone(browser, tmp_path):
    found = load_example()
    made = report(found.rankings, settings=Settings(n_permutations=9))
    assert set(made.pictures) == {"first choices", "map", "tree", "gram"}
    for name, picture in made.pictures.items():
        path = tmp_path / f"{name.replace(' ', '-')}.svg"
        picture.save(path)
        with Watched(browser, path) as watched:
            assert watched.page.evaluate("document.documentElement.tagName") == "svg"
            assert watched.page.evaluate("document.querySelectorAll('parsererror').length") == 0
            assert watched.page.evaluate("getComputedStyle(document.querySelector('.axis')).fontSize") != "16px"
    assert made.pictures["map"]._repr_html_().startswith('<img alt="map" src="data:image/svg+xml;base64,')
    assert "<iframe srcdoc=" in made._repr_html_()
