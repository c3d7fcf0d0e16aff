"""The package and its documentation use the words of the literature; retired terms do not come back.

``python tests/project/test_words.py`` lists all lines with a retired term, with the number of lines of each folder.
"""

import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [
    ROOT / "README.md",
    *sorted(
        path
        for folder in ("src", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".pyi", ".md", ".toml", ".html", ".jinja"}
        and not {"_build", "generated", "__pycache__"} & set(path.parts)
    ),
]

# Term: what to write instead. Terms are found as whole words in prose, and as parts of snake_case and CamelCase names.
RETIRED = {
    "asked": "requested, given",
    "as it is": "name what is unchanged",
    "at hand": "name the object",
    "ballots needed": "sample size",
    "bar": "standard error, confidence interval",
    "bars": "standard errors, confidence intervals",
    "beats all": "Condorcet winner",
    "carrying": "effective sample size",
    "circle": "Condorcet cycle",
    "circles": "Condorcet cycles",
    "concluded": "resolved",
    "doubtful": "unreliable, high variance",
    "duel": "pairwise contest",
    "duels": "pairwise contests",
    "everybody": "all voters, all users",
    "floor": "lower bound",
    "heard": "checked, received",
    "how sure": "standard error",
    "is positive": "is_psd",
    "kept": "cached, stored, retained",
    "known parts": "control variates",
    "law": "distribution",
    "laws": "distributions",
    "level": "confidence level, significance level (alpha)",
    "mended": "repaired",
    "nobody": "no voter, no user",
    "obstacle": "reason",
    "obstacles": "reasons",
    "once more": "independent replicate",
    "passed over": "dropped, ignored",
    "patchwork": "hybrid",
    "place": "position, rank; row, column, index",
    "placed": "ranked, stored",
    "places": "positions, ranks; rows, columns, indices",
    "posed": "resolved",
    "programme": "dynamic program",
    "programmes": "dynamic programs",
    "repetition": "independent replicate",
    "repetitions": "independent replicates",
    "rest by": "fallback",
    "return the same of": "name what is returned",
    "return what": "name what is returned",
    "room": "memory, space",
    "say how": "return, describe",
    "say what": "return, describe",
    "say whether": "whether",
    "select nu": "bandwidth selection",
    "settled": "resolved",
    "sharp": "narrow",
    "sight": "name the object",
    "slope": "gradient, derivative",
    "slopes": "gradients, derivatives",
    "so many": "give the number",
    "spread": "chunked, distributed; standard deviation",
    "spreading": "chunking, distributing",
    "spreads": "standard deviations",
    "stretch": "chunk, block",
    "stretches": "chunks, blocks",
    "sure": "certain, significant",
    "tail": "Pearson type III approximation, p-value from moments",
    "tails": "p-values from moments",
    "there is none": "name what is missing",
    "tile": "block, chunk",
    "tiles": "blocks, chunks",
    "told": "cached, given",
    "turned": "reversed",
    "usual": "inliers, null model",
    "what is left": "remainder, residual",
    "whoever": "name the person",
    "why": "reason",
    "width": "decay rate, inverse bandwidth",
    "widths": "decay rates",
    "worth": "effective sample size, participation ratio",
}

# Files, pattern, reason: what the pattern matches is not searched for retired terms.
ALLOWED = [
    ("*", r"(?i)\bin[- ]place\b", "modify in place, as in NumPy"),
    ("*", r"(?i)\btak(e|es|ing) place\b", "an idiom"),
    ("*", r"(?i)\bdecimal places?\b", "digits of a number"),
    ("*", r"(?i)\bis positive\b", "a sign; the retired attribute is is_positive"),
    ("*", r"(?i)\b(dropped|removed) or kept\b|\bkept or (dropped|removed)\b|\bblank_kept\b|\" kept\"", "blank ballots"),
    ("*", r"(?i)\b(soon|long|far|often|much|well) as it is\b", "a comparison"),
    ("*", r"\\bar\b", "a mean in LaTeX"),
    ("*", r"\bnp\.tile\b|\baxes\.bar\b", "functions of NumPy and matplotlib"),
    ("*", r"\b(p|power|left|right|self)\.slope\b|intercept \+ slope|slope: float", "slope of a linear function"),
    ("docs/reproduction/*", r".*", "results written by the experiments of the paper"),
    ("docs/*.py", r"(?i)\"width\"|width_ratios|show_toc_level", "options of other packages"),
    ("README.md", r"width=\"\d+\"", "HTML"),
    ("*", r"(?i)\bvertical bars?\b", "the character"),
    ("src/rankernel/cli/terminal.py", r"(?i)\bBarColumn\b|\bthe bar\b|\bbar\.|\bas bar:", "a progress bar"),
    ("*", r"(?i)\bslope heuristic\b", "a method of model selection (Birgé and Massart)"),
    ("*", r"(?i)\b(confidence|significance|noise|nominal|log|logging)[ _-]?levels?\b", "terms of statistics"),
    ("*", r"(?i)\b(top|high|low|module|first|second)[ -]levels?\b", "levels of a hierarchy"),
    ("*", r"(?i)\b(at|exact|the|a|its|one|all|smallest|adjusted|right|whose|of) levels?\b", "the level of a test"),
    ("*", r"(?i)\b(np|math|numpy)\.floor\b|\bfloor(ed)? division\b", "the mathematical function"),
    ("*", r"(?i)\b(two|one|heavy|upper|lower|long)[ -]tail(s|ed)?\b", "terms of probability"),
    ("*", r"(?i)\btail (probabilit|bound)", "terms of probability"),
    ("*", r"(?i)\b(progress|error|scroll|side|colou?r)[ _-]?bars?\b|\bbar (chart|plot)s?\b", "graphics"),
    ("*", r"(?i)\b(line|stroke|border|max|min|image|column|page|picture|text)[ _-]?widths?\b|\bwidth:", "graphics"),
    ("*", r"(?i)\bwidth of (the |an? )?(confidence )?intervals?\b|\binterval widths?\b", "width of an interval"),
    ("*", r"(?i)<circle|'circle'|\"circle\"", "an SVG element"),
    ("*", r"(?i)\blaw of large numbers\b|\bComparative Judgment\b", "titles"),
    ("src/rankernel/reports/*", r"(?i)widths?|bars?|\bcircles?\b", "graphics"),
    ("src/rankernel/plots.py", r"(?i)widths?|bars?|\bcircles?\b", "graphics"),
    ("src/rankernel/cli/*", r"(?i)\bwidths?\b", "columns of a table"),
    ("src/rankernel/io/*", r"(?i)\bwidths?\b", "columns of a table"),
    ("src/rankernel/stats/differences.py", r"(?i)\bwidths?\b", "columns of a table"),
    ("src/rankernel/stats/base.py", r"(?i)\bwidths?\b", "columns of a table"),
    ("src/rankernel/stats/outliers.py", r"\"usual ballots\"", "the name of a random stream, which decides the draws"),
    ("src/rankernel/columns.py", r"\|place\|", "a column name of files"),
    ("docs/_*", r"(?i)\bwidths?\b|\bbars?\b", "graphics"),
    ("docs/*", r"\\bar\b|\baxes\.bar\b", "LaTeX and matplotlib"),
    ("docs/*", r"(?i)\bis positive (?!semi_)", "positive (semi-definite) values, in prose"),
    ("docs/conf.py", r"show_toc_level", "an option of the theme"),
    ("docs/*_picture.py", r"width", "graphics"),
    ("README.md", r'width="\d+"', "graphics"),
    ("docs/reproduction/index.html", r"width=device-width", "graphics"),
    ("docs/bibliography.md", r".*", "titles of publications"),
]


def words(line: str) -> str:
    """Return the words of a line in lower case, names split at underscores and capitals."""
    line = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", line)
    return " " + " ".join(re.findall(r"[a-z]+", line.lower())) + " "


def retired_terms(path: str, line: str) -> list[str]:
    """Return the retired terms of a line of a file."""
    text = words(line)
    if not any(f" {term} " in text for term in RETIRED):
        return []
    for pattern, allowed, _ in ALLOWED:
        if fnmatch(path, pattern):
            line = re.sub(allowed, " | ", line)
    text = words(line)
    return [term for term in RETIRED if f" {term} " in text]


def findings() -> list[tuple[str, int, str]]:
    """Return path, line number and term of all retired terms."""
    return [
        (path.relative_to(ROOT).as_posix(), number, term)
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for term in retired_terms(path.relative_to(ROOT).as_posix(), line)
    ]


def test_terms_are_found_in_prose_and_names():
    assert retired_terms("a.py", "def tile_of(SlopeTable): 'Settled.'") == ["settled", "slope", "tile"]
    assert retired_terms("a.py", "sorts in place, at a confidence level; tiled, lawful") == []
    assert retired_terms("docs/a.md", "Rows were passed over.") == ["passed over"]


def test_no_retired_terms():
    lines = [f"{path}:{number}: {term!r}, write: {RETIRED[term]}" for path, number, term in findings()]
    assert not lines, "\n".join(lines)


def main() -> None:
    """Print the number of retired terms of each folder and term, then all of them."""
    found = findings()
    folder = Counter("/".join(path.split("/")[: 3 if path.startswith("src") else 2]) for path, *_ in found)
    print(f"{len(found)} retired terms\n")
    for name, count in folder.most_common():
        print(f"{count:6} {name}")
    print()
    for term, count in Counter(term for *_, term in found).most_common():
        print(f"{count:6} {term}: write {RETIRED[term]}")
    print()
    for path, number, term in found:
        print(f"{path}:{number}: {term}")


if __name__ == "__main__":
    main()
