"""The layout of the page in a browser: nothing clipped, no overlapping labels, sufficient size and contrast.

The checks are in ``page_checks.js``; here are data that make a page difficult, in all sizes in which it is shown.
"""

from pathlib import Path

import numpy as np
import pytest
from browsing import Watched, open_browser
from real_data import needs_data, preflib

from rankernel import Preferences, Rankings, read, report
from rankernel.datasets import load_example, mallows, mixture

CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")
LONG = "Wilhelmina Featherstonehaugh-Cholmondeley"  # 41 characters
SCREENS = {
    "1280 light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "1280 dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "390": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
REAL = {
    "00001-00000001.soi": 3,
    "00002-00000001.soi": 1,
    "00005-00000001.toi": 2,
    "00006-00000001.toc": 1,
    "00008-00000001.soi": 3,
    "00021-00000001.toi": 4,
    "00026-00000001.cat": 2,
    "00028-00000001.soi": 3,
    "00034-00000001.soi": 1,
}
SHEET = (672, 1002)  # pixels of a sheet of A4 within its margins
LEAST_FILL = 0.5  # of every page but the last
LEAST_LETTERS = 8.6  # pixels: 6.5 points
# The texts of pictures with their sizes, and the heights of the indivisible blocks in their order.
ON_PAPER = """() => {
  const seen = (node) => node.getClientRects().length;
  const letters = [...document.querySelectorAll("svg text")].filter(seen).map((node) => {
    const svg = node.closest("svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [node.textContent.slice(0, 30), parseFloat(getComputedStyle(node).fontSize) * scale];
  });
  const whole = "svg, tr, article, pre, p, li, h1, h2, h3, dl > div, figcaption, .beside section > *";
  const outer = (node) => seen(node) && !node.parentElement.closest(whole);
  const parts = [...document.querySelectorAll(whole)].filter(outer);
  const rows = new Map();  /* blocks side by side are as high as the highest */
  for (const part of parts) {
    const box = part.getBoundingClientRect();
    const top = Math.round(box.top);
    rows.set(top, Math.max(rows.get(top) ?? 0, box.bottom));
  }
  const tops = [...rows.keys()].sort((a, b) => a - b);
  return [letters, tops.map((top, place) => (tops[place + 1] ?? rows.get(top)) - top)];
}"""


def shuffled(n_rankings, names, seed=0):
    return Rankings(np.argsort(np.random.default_rng(seed).random((n_rankings, len(names))), axis=1), names)


def two_camps(names, n_rankings=200):
    up = mallows(n_rankings // 2, len(names), 1.0, rng=0, items=names)
    down = mallows(n_rankings // 2, list(range(len(names)))[::-1], 1.0, rng=1, items=names)
    return Rankings(np.concatenate([up.ranks, down.ranks]), names)


def many_groups():
    return two_camps(list("abcdefg"), 500), {
        "groups": [f"ward {row % 25 + 1}" for row in range(500)],
        "group_name": "ward",
    }


def example():
    found = load_example()
    options = {"title": "Nowhere Bay", "groups": found.districts, "group_name": "district", "noun": "candidate"}
    return found.rankings, options


DIFFICULT = {
    "names of 41 characters": lambda: (two_camps([f"{LONG} {n}" for n in range(9)]), {"title": f"{LONG} {LONG}"}),
    "60 candidates": lambda: (shuffled(80, [f"candidate {n}" for n in range(60)]), {}),
    "two candidates": lambda: (Rankings.from_orders([["yes", "no"], ["no", "yes"]], counts=[5, 4]), {}),
    "one ballot": lambda: (Rankings.from_orders([["a", "b", "c"]]), {}),
    "25 groups": many_groups,
    "pairs": lambda: (Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a")]] * 10), {}),
    "wide letters": lambda: (two_camps(["WWWWMMMMWWWW", "東京都千代田区永田町一丁目", "m" * 40, "i" * 40]), {}),
}


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


def write_page(data, path, **options):
    report(data, path, n_permutations=99, **options)
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page of the bundled example, as a file."""
    data, options = example()
    return write_page(data, tmp_path_factory.mktemp("page") / "page.html", n_clusters=3, **options)


# The event of a new size comes before the next frame.
NEXT_FRAMES = "new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))"


def faults_of(browser, path):
    """Return the faults of a page on all screens, with its details opened, and on paper."""
    found = {}
    with Watched(browser, path, **SCREENS["1280 light"]) as watched:
        watched.page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        for name, options in SCREENS.items():
            watched.page.set_viewport_size(options["viewport"])
            watched.page.emulate_media(color_scheme=options["color_scheme"])
            watched.page.evaluate(NEXT_FRAMES)
            found[name] = watched.page.evaluate(CHECKS)
        watched.assert_quiet()
        found["print"] = faults_on_paper(watched.page)
    return {name: wrong for name, wrong in found.items() if wrong}


def faults_on_paper(page):
    """Return the faults of the printed page: texts of less than 6.5 pt and pages that are half empty.

    A sheet has the size of A4 without its margins. A block that does not fit begins a new page.
    """
    page.set_viewport_size({"width": SHEET[0], "height": SHEET[1]})
    page.emulate_media(media="print")
    small, blocks = page.evaluate(ON_PAPER)
    wrong = [f"{name} is {size:.1f} px high" for name, size in small if size < LEAST_LETTERS]
    used, filled = 0.0, []
    for height in blocks:
        if height > SHEET[1]:
            wrong.append(f"a block of {height:.0f} px is higher than a page")
        if used + height > SHEET[1]:
            filled.append(used / SHEET[1])
            used = 0.0
        used += height
    wrong += [f"page {number} is filled by {share:.0%}" for number, share in enumerate(filled, 1) if share < LEAST_FILL]
    return wrong


def test_layout_of_the_example(browser, written):
    assert faults_of(browser, written) == {}


@pytest.mark.parametrize("name", DIFFICULT)
def test_layout_of_difficult_data(name, browser, tmp_path):
    data, options = DIFFICULT[name]()
    assert faults_of(browser, write_page(data, tmp_path / "page.html", **options)) == {}


def test_layout_of_many_clusters(browser, tmp_path):
    rankings = mixture(300, [lambda n, rng: mallows(n, 8, 0.3, rng=rng)], rng=0).rankings
    assert faults_of(browser, write_page(rankings, tmp_path / "page.html", n_clusters=12)) == {}


@needs_data
@pytest.mark.parametrize("name", REAL)
def test_layout_of_real_data(name, browser, tmp_path):
    page = write_page(read(preflib(name)), tmp_path / "page.html", title=name, n_clusters=REAL[name])
    assert faults_of(browser, page) == {}


def test_checks_find_faults(browser, written, tmp_path):
    """Each style is one of the faults that the checks look for."""
    faults = {
        ".lede { font-size: 6px }": "px high",
        ".kicker { color: #ddd }": "contrast",
        ".verdict { width: 3000px; max-width: none }": "sticks out of the page",
        "svg.map [data-says] { display: none !important }": "nothing is seen of map: axes",
        "svg.tree text { display: none }": "the picture tree has no words",
    }
    path = tmp_path / "broken.html"
    # The content policy would block another style.
    path.write_text(written.read_text(encoding="utf-8").replace('http-equiv="Content-Security-Policy"', ""))
    with Watched(browser, path, **SCREENS["1280 light"]) as watched:
        page = watched.page
        for style, wanted in faults.items():
            added = page.add_style_tag(content=style)
            assert any(wanted in fault for fault in page.evaluate(CHECKS)), style
            added.evaluate("(style) => style.remove()")
        page.evaluate("document.querySelectorAll('svg.bars .label').forEach((name) => (name.textContent = 'Amb…'))")
        assert '"Amb…" stands for two different names' in page.evaluate(CHECKS)
        hidden = "header p, header dl, #ahead > p, #ahead > .tabular { display: none }"
        page.add_style_tag(content=f"{hidden} svg.bars {{ height: 980px !important }}")
        page.add_style_tag(content="svg.gram text { font-size: 5px }")
        wrong = " ".join(faults_on_paper(page))
        assert "px high" in wrong
        assert "is filled by" in wrong


def test_group_colours_are_unique(browser, tmp_path):
    data, options = many_groups()
    path = write_page(data, tmp_path / "page.html", n_clusters=2, compare=["ward 1", "ward 2"], **options)
    with Watched(browser, path, **SCREENS["1280 light"]) as watched:
        watched.page.check("input[value=group]")
        colours = watched.page.evaluate(
            "[...document.querySelectorAll('.by-group-only .dot')].map(dot => getComputedStyle(dot).backgroundColor)"
        )
        assert len(colours) == len(set(colours))
        key = watched.page.locator(".by-group-only li").all_inner_texts()
    assert "others (18 groups)" in key
    wards = [int(line.split()[1]) for line in key if line.startswith("ward")]
    assert wards == sorted(wards)


def test_print_layout(browser, written, tmp_path):
    with Watched(browser, written, viewport={"width": SHEET[0], "height": SHEET[1]}) as watched:
        watched.page.emulate_media(media="print")
        assert watched.page.evaluate("getComputedStyle(document.querySelector('h2')).breakAfter") == "avoid"
        for unseen in (".take", ".by-hand", ".controls", "details"):
            assert not watched.page.locator(unseen).first.is_visible()
        watched.page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") <= 6


def test_card_lists_begin_at_the_same_height(browser, written):
    tops = "[...document.querySelectorAll('.cards ol')].map(list => list.getBoundingClientRect().top)"
    with Watched(browser, written, **SCREENS["1280 light"]) as watched:
        found = watched.page.evaluate(tops)
    assert len(found) == 3
    assert len({round(top) for top in found}) == 1


def test_contests_are_printed_on_one_page(browser, written):
    with Watched(browser, written, viewport={"width": SHEET[0], "height": SHEET[1]}) as watched:
        watched.page.emulate_media(media="print")
        assert watched.page.evaluate("getComputedStyle(document.querySelector('.heat')).breakInside") == "avoid"


def test_pictures_are_self_contained(browser, tmp_path):
    rankings = two_camps(list("abcd"), 60)
    made = report(rankings, groups=np.repeat(["x", "y"], 30), n_permutations=99, n_clusters=2)
    clusters, pairs = {"dendrogram", "gram", "cluster A", "cluster B"}, {"pairs: x and y", "null distribution: x and y"}
    assert set(made.pictures) == {"first choices", "map", "contests"} | clusters | pairs
    for name, picture in made.pictures.items():
        path = tmp_path / f"{name.replace(' ', '-').replace(':', '')}.svg"
        picture.save(path)
        with Watched(browser, path) as watched:
            assert watched.page.evaluate("document.documentElement.tagName") == "svg"
            assert watched.page.evaluate("document.querySelectorAll('parsererror').length") == 0
            styled = "getComputedStyle(document.querySelector('.axis') ?? document.querySelector('.label'))"
            assert watched.page.evaluate(f"{styled}.fontSize") != "16px"
            words = watched.page.evaluate("[...document.querySelectorAll('text')].map(text => text.textContent)")
            if name in ("map", "dendrogram", "gram"):  # with a key
                assert sum(word.startswith(("A · ", "B · ")) for word in words) >= 2
    assert made.pictures["map"]._repr_html_().startswith('<img alt="map" src="data:image/svg+xml;base64,')
    assert "<iframe srcdoc=" in made._repr_html_()
