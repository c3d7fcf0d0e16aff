"""Build the package, check both files, and use the wheel where nothing else is: ``python .ci/build.py``.

Leaves the files in ``dist/``.
"""

from __future__ import annotations

import email
import shutil
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from environments import ROOT, environment, install, run

sys.path.insert(0, str(ROOT / "tests"))
from readme import ten_lines

FOLDERS = {".ci", "benchmarks", "docs", "reproduction", "src", "tests"}
CARRIED = FOLDERS | {".gitignore", "CITATION.cff", "LICENSE", "PKG-INFO"}
MADE = {"__pycache__", "_build", "generated", "venv"}
NOT_OURS = (".pyc", ".nbi", ".nbc", ".cat", ".soc", ".soi", ".toc", ".toi")  # caches; data that is not ours to pass on


def main() -> None:
    """Build, check, install, use."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    (archive,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    version = archive.name.removeprefix("rankernel-").removesuffix(".tar.gz")
    check(f"\n## [{version}]" in text("CHANGELOG.md"), f"CHANGELOG.md says nothing of {version}")
    check(f"\nversion: {version}\n" in text("CITATION.cff"), f"CITATION.cff is not of {version}")
    check_archive(archive)
    check_wheel(wheel, version)
    with tempfile.TemporaryDirectory() as folder:
        use(wheel, version, Path(folder))
    sys.stdout.write(f"{archive.name} and {wheel.name}: built, checked and used\n")


def check(holds: bool, problem: str) -> None:
    """Stop, saying what is wrong, unless all is well."""
    if not holds:
        raise SystemExit(f"build: {problem}")


def text(name: str) -> str:
    """Return what a file of the repository says."""
    return (ROOT / name).read_text(encoding="utf-8")


def sources() -> set[str]:
    """Return the files of the package as they lie in the repository."""
    package = ROOT / "src" / "rankernel"
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and not MADE & set(path.parts)
    }


def check_archive(path: Path) -> None:
    """Check that the source archive holds the package and its tests, and nothing that was made from them."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = ({f"src/{name}" for name in sources()} | {"LICENSE", "README.md", "tests/naive.py"}) - names
    check(not missing, f"{path.name} lacks {sorted(missing)}")
    tops = {name.split("/")[0] for name in names if not name.endswith(".md")}
    check(tops == CARRIED | {"pyproject.toml"}, f"{path.name} holds {sorted(tops)}")
    strange = [name for name in names if MADE & set(name.split("/")) or name.endswith(NOT_OURS)]
    check(not strange, f"{path.name} holds {sorted(strange)}")


def check_wheel(path: Path, version: str) -> None:
    """Check that the wheel holds the package, its licence and its description, and nothing else."""
    about = f"rankernel-{version}.dist-info/"
    own = {about + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        metadata = email.message_from_bytes(wheel.read(about + "METADATA"))
        commands = wheel.read(about + "entry_points.txt").decode()
    wanted = sources() | own
    check(names == wanted, f"{path.name}: missing {sorted(wanted - names)}, too many {sorted(names - wanted)}")
    check("rankernel/py.typed" in names, "no py.typed: type checkers would see nothing")
    check("rankernel = rankernel.cli:main" in commands, "the wheel brings no command")
    for field, value in {"Name": "rankernel", "Version": version, "License-Expression": "BSD-3-Clause"}.items():
        check(metadata[field] == value, f"the metadata say {field}: {metadata[field]}")
    check(metadata["Description-Content-Type"] == "text/markdown", "README would not be shown as Markdown")
    needs = [line.split(">=")[0] for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    promised = [line.split(">=")[0] for line in tomllib.loads(text("pyproject.toml"))["project"]["dependencies"]]
    check(sorted(needs) == sorted(promised), f"the wheel needs {needs}, pyproject.toml names {promised}")


def use(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel alone and do what a stranger would: the ten lines of README, then its command."""
    python = environment(folder / "bare", wheel)
    home = run(python, "-c", "import rankernel; print(rankernel.__file__)", folder=folder)
    check(str(folder) in home, f"the package was taken from {home}")
    code, shown = ten_lines(ROOT / "README.md")
    printed = run(python, "-c", code, folder=folder)
    check(printed.rstrip() == shown.rstrip(), f"README shows\n{shown}\nand its code prints\n{printed}")
    install(python, f"{wheel}[cli]")
    command = python.parent / "rankernel"
    check(version in run(command, "--version", folder=folder), "the command line has another version")
    run(command, "info", folder=folder)
    run(command, "report", "-o", "report.html", folder=folder)
    check("<svg" in (folder / "report.html").read_text(encoding="utf-8"), "the report has no pictures")


if __name__ == "__main__":
    main()
