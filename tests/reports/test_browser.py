"""The page in a browser: no errors, no requests, mouse, keyboard, touch and saved files; names are never run."""

import csv
import itertools
import re

import numpy as np
import pytest
from browsing import Watched, open_browser

from rankernel import Comparisons, Mallows, Preferences, Rankings, leaderboard, report
from rankernel.datasets import load_example
from rankernel.reports.ballots import Source
from rankernel.reports.clusters import Settings
from rankernel.reports.page import render_page
from rankernel.reports.summary import summarize

ATTACKS = [
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 2">',
    "</script><script>window.broken = 3</script>",
    "<svg onload=window.broken=4>",
    "javascript:window.broken=5",
]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def summary():
    example = load_example()
    source = Source(example.rankings, "Nowhere Bay", group_name="district", groups=example.districts, noun="candidate")
    return summarize(source, Settings(n_permutations=99))


@pytest.fixture(scope="module")
def election(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "election.html"
    path.write_text(render_page(summary), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_errors_or_requests(browser, election, scheme):
    with Watched(browser, election, color_scheme=scheme) as watched:
        page = watched.page
        assert page.title() == "Nowhere Bay"
        assert page.locator(".points circle").count() == len(load_example().rankings.unique())
        lightness = page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
        )
        assert (sum(lightness) > 600) == (scheme == "light")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1100
        watched.assert_quiet()


def test_pointing_shows_a_ballot(browser, election):
    with Watched(browser, election) as watched:
        page = watched.page
        tip = page.locator(".tip")
        assert not tip.is_visible()
        most = load_example().rankings.unique().counts.max()
        page.locator(f'.points circle[aria-label^="{most} voters: Eldermist"]').scroll_into_view_if_needed()
        box = page.locator(f'.points circle[aria-label^="{most} voters: Eldermist"]').bounding_box()
        # At its rim, where no small point is in front of it.
        page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2)
        assert tip.is_visible()
        assert tip.locator("b").inner_text() == f"{most} voters"
        assert tip.locator("li").first.inner_text().split() == ["1", "Eldermist"]
        assert tip.locator("li").nth(1).inner_text().startswith("2=")
        assert "Cluster C" in tip.inner_text()
        page.mouse.move(2, 2)
        assert not tip.is_visible()
        watched.assert_quiet()


def test_keyboard_moves_between_ballots(browser, election):
    with Watched(browser, election) as watched:
        page = watched.page
        page.locator("#search").focus()
        page.keyboard.press("Tab")
        label = "document.activeElement.getAttribute('aria-label')"
        x = "document.activeElement.cx.baseVal.value"
        first, start = page.evaluate(label), page.evaluate(x)
        assert "voters: " in first
        assert page.locator(".tip").is_visible()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(label) != first
        assert page.evaluate(x) > start
        page.keyboard.press("Home")
        assert page.evaluate(label) == first
        page.keyboard.press("Escape")
        assert not page.locator(".tip").is_visible()
        assert page.locator('.points circle[tabindex="0"]').count() == 1
        page.keyboard.press("Tab")  # one step leads out of the map
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        watched.assert_quiet()


def test_switch_changes_colours(browser, election):
    with Watched(browser, election) as watched:
        page = watched.page
        colours = "[...document.querySelectorAll('.points circle')].map(c => getComputedStyle(c).fill)"
        by_cluster = page.evaluate(colours)
        assert len(set(by_cluster)) == 3
        assert not page.locator("ul.by-group-only").is_visible()
        page.check("input[value=group]")
        by_group = page.evaluate(colours)
        assert by_group != by_cluster
        assert len(set(by_group)) == 3  # two districts, and neither
        assert page.locator("ul.by-group-only").is_visible()
        assert not page.locator("ul.by-cluster-key").is_visible()
        assert not page.locator(".names.large").is_visible()
        page.check("input[value=cluster]")
        assert page.evaluate(colours) == by_cluster
        watched.assert_quiet()


def test_number_of_clusters_can_be_changed(browser, election):
    with Watched(browser, election) as watched:
        page, panel = watched.page, watched.page.locator("#explored")
        assert page.locator("#number").input_value() == "3"
        page.locator("#number").fill("2")
        assert panel.locator("h3").inner_text() == "2 clusters"
        sizes = [line.split(": ")[1].split(" voters")[0] for line in panel.locator("li").all_inner_texts()]
        assert sum(int(size.replace(",", "")) for size in sizes) == 2400
        fills = page.evaluate("new Set([...document.querySelectorAll('.points circle')].map(c => c.classList[0])).size")
        assert fills == 2
        page.locator("#number").fill("3")
        assert not panel.is_visible()
        watched.assert_quiet()


def test_clusters_of_the_page_match_the_library(browser, election, summary):
    from rankernel.learn.hierarchy import flat_clusters

    with Watched(browser, election) as watched:
        watched.page.locator("#number").fill("5")
        drawn = watched.page.evaluate(
            "[...document.querySelectorAll('.points circle')].map(c => [Number(c.dataset.row), c.classList[0]])"
        )
    labels = flat_clusters(summary.clustering.tree, 5)
    pairs = {(labels[row], colour) for row, colour in drawn}
    assert len(pairs) == 5  # one colour for each cluster, and one cluster for each colour


def test_selection_by_keyboard_and_frame(browser, election):
    with Watched(browser, election) as watched:
        page, panel = watched.page, watched.page.locator("#explored")
        page.locator("#search").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert panel.locator("h3").inner_text() == "Selected: 1 ballot of 121 voters, 5%"
        assert "100% rank Eldermist first" in panel.inner_text()
        page.keyboard.press("Escape")
        assert not panel.is_visible()
        box = page.locator("svg.map").bounding_box()
        page.mouse.move(box["x"] + 1, box["y"] + 1)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1, steps=4)
        page.mouse.up()
        assert panel.locator("h3").inner_text() == "Selected: 656 ballots of 2,400 voters, 100%"
        assert "Higher" not in panel.inner_text()  # a selection of all voters has no shifts
        watched.assert_quiet()


def test_finding_a_candidate(browser, election):
    with Watched(browser, election) as watched:
        page, panel = watched.page, watched.page.locator("#explored")
        page.fill("#search", "cinder")
        page.keyboard.press("Enter")
        assert panel.locator("h3").inner_text() == "Cindervale"
        assert "Position 1 of 8" in panel.inner_text()
        assert "Loses" not in panel.inner_text()
        ranks = load_example().rankings.unique().ranks
        first = (ranks[:, load_example().rankings.items.index("Cindervale")] == 0).sum()
        assert page.locator(".points circle.chosen").count() == first
        page.fill("#search", "nobody")
        page.keyboard.press("Enter")
        assert "There is no candidate of this name" in panel.inner_text()
        watched.assert_quiet()


# A headless browser draws no frames by itself, and converts pictures in idle time between frames.
FRAMES = "(function next() { requestAnimationFrame(next); })()"


def all_saved_files(browser, path, folder):
    """Return the content of every file that a page can save, by name."""
    saved, n_files = {}, 1
    while len(saved) < n_files:
        with Watched(browser, path) as watched:
            page = watched.page
            page.evaluate(FRAMES)
            for summary in page.locator("summary").all():
                summary.click()
            buttons = page.locator(".take button").all()
            n_files = len(buttons)
            for button in buttons[len(saved) : len(saved) + 8]:  # a page may start at most ten downloads
                with page.expect_download() as waiting:
                    button.click()
                name = waiting.value.suggested_filename
                assert name not in saved
                waiting.value.save_as(folder / name)
                saved[name] = (folder / name).read_bytes()
            watched.assert_quiet()
    return saved


def test_pictures_and_tables_can_be_saved(browser, election, tmp_path):
    saved = all_saved_files(browser, election, tmp_path)
    pictures = ("first-choices", "cluster-A", "pairs", "null-distribution", "map", "tree", "gram", "contests")
    for name in pictures:
        assert saved[f"{name}.svg"].startswith(b"<svg")
        assert b"class=" not in saved[f"{name}.svg"]  # independent of the style of the page
        assert saved[f"{name}.png"].startswith(b"\x89PNG")
        assert b">Nowhere Bay: " in saved[f"{name}.svg"]  # a title
    for name in ("map", "tree", "gram"):
        assert saved[f"{name}.svg"].count(b"Amberlow first</text>") >= (2 if name == "map" else 1)  # and a key
    ballots = list(csv.DictReader(saved["ballots.csv"].decode().splitlines()))
    assert len(ballots) == 656
    assert sum(int(row["voters"]) for row in ballots) == 2400
    assert {row["cluster"][0] for row in ballots} == {"A", "B", "C"}
    contests = list(csv.reader(saved["contests.csv"].decode().splitlines()))
    assert contests[0] == ["first", "second", "prefer the first", "prefer the second", "neither"]
    assert contests[1] == ["Cindervale", "Amberlow", "923", "813", "664"]
    assert len(contests) == 1 + 8 * 7 // 2
    assert {"clusters-by-group.csv", "common-ballots.csv"} <= set(saved)
    with Watched(browser, election) as watched:
        page = watched.page
        page.check("input[value=group]")
        page.set_viewport_size({"width": 390, "height": 800})  # a phone saves the same picture
        with page.expect_download() as waiting:
            page.get_by_label("Save as SVG: Map").click()
        by_district = waiting.value.path().read_text(encoding="utf-8")
        assert ">north</text>" in by_district
        assert "first component" in by_district
        assert "Amberlow first</text>" not in by_district
        watched.assert_quiet()


def test_ballots_that_are_not_on_the_map_are_saved(browser, tmp_path):
    """All orders of six items, of which 60 are on the map; the page contains all of them, or as many as it says."""
    ranks = np.argsort(np.array(list(itertools.permutations(range(6)))), axis=1)
    settings = Settings(kernel=Mallows(0.3), n_clusters=3, max_ballots=60)
    summary = summarize(Source(Rankings(ranks), "All orders"), settings)
    assert len(summary.view.rows) == 60
    paths = []
    for max_numbers in (10**6, 10 * 200):  # six ranks and four more numbers a ballot
        paths.append(tmp_path / f"{max_numbers}.html")
        paths[-1].write_text(render_page(summary, max_numbers), encoding="utf-8")
    with Watched(browser, paths[0]) as watched:
        rows = saved_ballots(watched.page, "CSV of the ballots")
        assert len({row["ballot"] for row in rows}) == 720
        found = {tuple(map(float, (row["x"], row["y"]))): row["cluster"] for row in rows}
        for point, label in zip(summary.embedding.points.round(5).tolist(), summary.labels.tolist(), strict=True):
            assert found[tuple(point)].startswith(summary.clustering.clusters[label].name)
        watched.page.locator("#number").fill("5")
        text = watched.page.locator("#explored").inner_text()
        assert "refer to the 60 voters shown, a random sample of 720" in text
        rows = saved_ballots(watched.page, "CSV of the ballots")
        assert [bool(row["cluster"]) for row in rows] == [True] * 60 + [False] * 660
        watched.page.locator(".points circle").first.focus()
        watched.page.keyboard.press("Space")
        text = watched.page.locator("#explored h3").inner_text()
        assert text == "Selected: 1 ballot of 1 voter, 2% of the 60 shown"
    with Watched(browser, paths[1]) as watched:
        assert len(saved_ballots(watched.page, "CSV of 200 of 720 ballots")) == 200
        watched.assert_quiet()


def page_of(folder, rankings, **options):
    path = folder / "page.html"
    report(rankings, path, **options)
    return path


def shown_ballot(watched, number):
    """Return what the page says of a ballot to which a reader moves."""
    watched.page.locator(".points circle").nth(number).dispatch_event("focusin")
    return watched.page.locator(".tip").inner_text()


def test_approvals_are_described(browser, tmp_path):
    """Of 20 voters 8 approve of a and b, 7 of a, 3 of c and d and 2 of all or none."""
    rankings = Rankings([[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], list("abcd"), counts=[8, 7, 3, 2])
    with Watched(browser, page_of(tmp_path, rankings, n_clusters=1)) as watched:
        page, panel = watched.page, watched.page.locator("#explored")
        tips = {tip.splitlines()[0]: tip for tip in (shown_ballot(watched, number) for number in range(4))}
        for number, text in (("8", "approves a, b"), ("7", "approves a"), ("3", "approves c, d")):
            assert tips[f"{number} voters"].splitlines()[-1] == text
        assert "approves all or none" in tips["2 voters"]
        page.fill("#search", "a")
        page.keyboard.press("Enter")
        assert "Position 1 of 4 in the Kemeny ranking." in panel.inner_text()
        assert "75% of the voters approve of it; their ballots are marked on the map." in panel.inner_text()
        assert page.locator(".points circle.chosen").count() == 2
        assert "Wins against b, c, d." in panel.inner_text()
        page.fill("#search", "b")
        page.keyboard.press("Enter")
        assert "Loses to a." in panel.inner_text()
        page.keyboard.press("Escape")
        page.locator('.points circle[aria-label^="3 voters"]').focus()
        page.keyboard.press("Space")
        text = panel.inner_text()
        assert "Selected: 1 ballot of 3 voters, 15%" in text
        assert text.split("Order by approvals: ")[1][:5] in ("c > d", "d > c")
        assert "100% approve of c; 15% of all voters do." in text
        assert "Higher (+) or lower (−) than among all voters, in percentage points: " in text
        assert all(shift in text for shift in ("a −75", "b −40", "c +85", "d +85"))
        page.locator("#number").fill("2")
        text = panel.inner_text()
        assert text.startswith("2 clusters")
        assert "The data do not support this number of clusters." in text
        lines = panel.locator("li").all_inner_texts()
        with_c = next(line for line in lines if "approves c" in line or "approves d" in line)
        assert "100%" in with_c.split("of all others")[0]
        assert sum(int(line.split("): ")[1].split(" voters")[0]) for line in lines) == 20
        watched.assert_quiet()


def test_candidate_and_selection_are_described(browser, election):
    """Shares and mean positions of the example, computed from its ballots."""
    rankings = load_example().rankings
    number, counts = rankings.items.index("Amberlow"), rankings.counts
    firsts = (rankings.ranks == 0) / (rankings.ranks == 0).sum(axis=1, keepdims=True)
    share = counts @ firsts[:, number] / rankings.n_voters
    ranks = rankings.ranks
    tied = np.array([[(row < rank).sum() + ((row == rank).sum() + 1) / 2 for rank in row] for row in ranks])
    mean = counts @ tied[:, number] / rankings.n_voters
    with Watched(browser, election) as watched:
        page, panel = watched.page, watched.page.locator("#explored")
        page.fill("#search", "Amberlow")
        page.keyboard.press("Enter")
        text = panel.inner_text()
        assert re.search(rf"Position \d of 8 in the Kemeny ranking; mean position {mean:.1f}\.", text)
        expected = f"{share:.0%} of the voters with a first choice rank it first; their ballots are marked on the map."
        assert expected in text
        page.keyboard.press("Escape")
        page.locator('.points circle[aria-label^="121 voters: Eldermist"]').focus()
        page.keyboard.press("Space")
        text, of_all = panel.inner_text(), counts @ firsts[:, rankings.items.index("Eldermist")] / rankings.n_voters
        assert text.split("Order by mean position: ")[1].startswith("Eldermist > ")
        assert f"100% rank Eldermist first; {of_all:.0%} of all voters do." in text
        page.locator("#number").fill("2")
        lines = [
            re.fullmatch(r"[AB] · (\w+) first \((\d+)%; .*?: ([\d,]+) voters, (\d+)%; .*", line)
            for line in panel.locator("li").all_inner_texts()
        ]
        assert sum(int(line[3].replace(",", "")) for line in lines) == 2400
        for line in lines:
            assert int(line[4]) == pytest.approx(100 * int(line[3].replace(",", "")) / 2400, abs=0.5)
        watched.assert_quiet()


def test_free_items_and_many_positions_are_described(browser, tmp_path):
    """Of 17 items the first ballot ranks all, the second three, and the third none above another."""
    full, some, none = [*range(17)], [0, 1, 2] + [-1] * 14, [0] * 17
    rankings = Rankings([full, some, none], [f"n{number}" for number in range(17)], counts=[5, 3, 2])
    with Watched(browser, page_of(tmp_path, rankings, n_clusters=1)) as watched:
        tips = {tip.splitlines()[0]: tip for tip in (shown_ballot(watched, number) for number in range(3))}
        assert "and 5 more positions" in tips["5 voters"]
        assert "14 items at any position" in tips["3 voters"]
        assert "no preference" in tips["2 voters"]
        watched.assert_quiet()


def test_pairs_of_partial_orders_are_described(browser, tmp_path):
    pairs = [[("c", "d"), *(("a", f"b{number}") for number in range(n))] for n in (14, 2, 1)]
    preferences = Preferences.from_pairs(pairs, counts=[5, 3, 2])
    with Watched(browser, page_of(tmp_path, preferences, n_clusters=1)) as watched:
        tips = {tip.splitlines()[0]: tip for tip in (shown_ballot(watched, number) for number in range(3))}
        assert "and 3 more pairs" in tips["5 voters"]
        assert tips["5 voters"].count(" > ") == 12
        assert set(tips["3 voters"].splitlines()[1:]) - {""} == {"c > d", "a > b0", "a > b1"}
        watched.assert_quiet()


@pytest.mark.filterwarnings("ignore::rankernel.errors.ReadingWarning")  # cycles of single judges
def test_item_of_a_leaderboard_is_found(browser, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(*rng.choice(list("abcd"), 2, replace=False), 1 if rng.random() < 0.7 else -1) for _ in range(300)]
    first, second, outcome = zip(*rows, strict=True)
    data = Comparisons.from_arrays(first, second, outcome, judge=rng.choice(list("pqrstu"), 300))
    with Watched(browser, page_of(tmp_path, data)) as watched:
        for position, name in enumerate(leaderboard(data).items, start=1):
            watched.page.fill("#search", name)
            watched.page.keyboard.press("Enter")
            assert f"Position {position} of 4 in the leaderboard." in watched.page.locator("#explored").inner_text()
        watched.assert_quiet()


def test_contests_of_many_items_are_saved_in_part(browser, tmp_path):
    ranks = np.argsort(np.random.default_rng(0).random((4, 201)), axis=1)
    with Watched(browser, page_of(tmp_path, Rankings(ranks), n_clusters=1)) as watched:
        with watched.page.expect_download() as waiting:
            watched.page.get_by_label("Save as CSV: all contests of the first 200 items").click()
        assert len(waiting.value.path().read_text().splitlines()) == 1 + 200 * 199 // 2
        watched.assert_quiet()


def saved_ballots(page, button):
    with page.expect_download() as waiting:
        page.get_by_text(button, exact=True).click()
    with open(waiting.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_table_opens(browser, election):
    with Watched(browser, election) as watched:
        table = watched.page.locator("#map details table")
        assert not table.is_visible()
        watched.page.locator("#map summary").click()
        assert table.is_visible()
        assert table.locator("tbody tr").count() == 100


def test_pictures_and_controls_have_labels(browser, election):
    with Watched(browser, election) as watched:
        unnamed = watched.page.evaluate(
            "[...document.querySelectorAll('svg, [role=img], [role=region], input')]"
            ".filter(e => !e.getAttribute('aria-label') && !e.labels?.length).length"
        )
        assert unnamed == 0
        levels = watched.page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert max(np.diff(levels)) == 1
        assert watched.page.evaluate("document.documentElement.lang") == "en"


def test_page_prints(browser, election, tmp_path):
    with Watched(browser, election, color_scheme="dark") as watched:
        watched.page.emulate_media(media="print")
        assert not watched.page.locator(".switch").is_visible()
        ink = watched.page.evaluate("getComputedStyle(document.documentElement).color.match(/\\d+/g).map(Number)")
        assert sum(ink) < 150  # dark on white also with a dark screen
        watched.page.pdf(path=tmp_path / "page.pdf", format="A4")
        assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") in range(2, 12)


def test_tap_selects_a_ballot(browser, election):
    with Watched(browser, election, viewport={"width": 390, "height": 800}, has_touch=True) as watched:
        page = watched.page
        page.locator("svg.map").scroll_into_view_if_needed()
        box = page.locator(".points circle").first.bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.locator("#explored h3").inner_text().startswith("Selected: 1 ballot of ")
        assert page.locator(".by-finger").is_visible()
        assert not page.locator(".by-hand").is_visible()
        watched.assert_quiet()


def test_page_without_a_map(browser, tmp_path):
    path = tmp_path / "two.html"
    two = Rankings.from_orders([["yes", "no"], ["no", "yes"]], counts=[5, 4])
    path.write_text(render_page(summarize(Source(two, "Yes or no"))), encoding="utf-8")
    with Watched(browser, path) as watched:
        assert watched.page.locator("svg.map").count() == 0
        with watched.page.expect_download() as waiting:
            watched.page.get_by_label("Save as CSV: all contests").click()
        assert waiting.value.path().read_text().splitlines()[1] == "yes,no,5,4,0"
        watched.assert_quiet()


def test_page_fits_a_phone(browser, election):
    with Watched(browser, election) as watched:
        watched.page.set_viewport_size({"width": 360, "height": 740})
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_names_are_never_run(browser, tmp_path):
    ranks = np.argsort(np.random.default_rng(1).random((20, len(ATTACKS))), axis=1)
    groups = np.array([ATTACKS[row % 4] for row in range(20)])
    source = Source(Rankings(ranks, ATTACKS), ATTACKS[1], ATTACKS[0], ATTACKS[2], ATTACKS[3], groups)
    path = tmp_path / "attack.html"
    path.write_text(render_page(summarize(source, Settings(n_permutations=9))), encoding="utf-8")
    with Watched(browser, path) as watched:
        page = watched.page
        page.check("input[value=group]")
        for circle in page.locator(".points circle").all():
            circle.dispatch_event("focusin")
            assert page.locator(".tip").is_visible()
        for summary in page.locator("summary").all():
            summary.click()
        for name in ATTACKS:
            page.fill("#search", name)
            page.keyboard.press("Enter")
            assert page.locator("#explored h3").inner_text() == name
        page.locator("#number").fill("2")
        assert page.evaluate("window.broken") is None
        assert page.locator("img").count() == 0
        assert page.locator("h1").inner_text() == ATTACKS[1]
        page.locator(".points circle").first.dispatch_event("focusin")
        assert ATTACKS[0] in page.locator(".tip").inner_text()
        watched.assert_quiet()


def test_content_policy_blocks_injected_code(browser, election, tmp_path):
    """The second line of defence: even code in the page is not run."""
    written = election.read_text(encoding="utf-8")
    attack = '<script>window.broken = 1</script><img src="x" onerror="window.broken = 2"><p style="color: red">'
    path = tmp_path / "slipped.html"
    path.write_text(written.replace("<main", attack + "<main", 1), encoding="utf-8")
    with Watched(browser, path) as watched:
        assert watched.page.evaluate("window.broken") is None
        assert len([line for line in watched.messages if "Content Security Policy" in line]) >= 3
