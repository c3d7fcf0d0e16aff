"""Sphinx configuration: ``sphinx-build -W -n docs docs/_build/html``."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from matplotlib import font_manager
from numpydoc.xref import DEFAULT_LINKS

import rankernel

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

# Notebook kernels use the programs of this environment and no user settings.
profile = Path(tempfile.mkdtemp(prefix="rankernel-docs-"), "profile_default")
profile.mkdir()
(profile / "ipython_kernel_config.json").write_text('{"IPKernelApp": {"log_level": 40}}')
os.environ["IPYTHONDIR"] = str(profile.parent)
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ["TTY_COMPATIBLE"] = "0"  # commands on the pages show no progress
font_manager.findfont("sans")  # build matplotlib's font cache, which prints a message, before pages are executed

from public_names import module_lists, write_lists  # noqa: E402 - the folder of extensions is on the path now

project = "rankernel"
author = "The rankernel developers"
copyright = "the rankernel developers"  # noqa: A001 - required by Sphinx
version = release = rankernel.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # the scripts and fonts of MathJax are part of the pages: no network access
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "reference_notes",
    "committed_results",
    "heat_map",
    "example_report",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # generated pages use the first
exclude_patterns = ["_build", "reference/names-*.rst"]  # included by pages
templates_path = ["_templates"]
nitpicky = True

# ---------------------------------------------------------------------- executed pages

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_in_temp = True
# Pages about optional libraries are executed only if these are installed.
nb_execution_excludepatterns = [
    f"tutorials/{page}.md"
    for page, library in {"dask": "dask", "gpy": "GPy", "gpytorch": "gpytorch"}.items()
    if find_spec(library) is None
]
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "error"  # output to stderr fails the build
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---------------------------------------------------------------------- reference

REFERENCE = HERE / "reference"
autosummary_generate = [f"reference/{name}" for name in (*write_lists(REFERENCE), *os.listdir(REFERENCE))]
autosummary_generate = sorted({name for name in autosummary_generate if name.endswith((".md", ".rst"))})
autosummary_imported_members = True
autodoc_typehints = "none"  # docstrings describe the types
autodoc_mock_imports = ["GPy", "botorch", "dask", "gpytorch", "paramz", "torch"]  # optional libraries
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True  # types in docstrings link to the pages of their classes, and to nothing else
DEFAULT_LINKS.clear()
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    name.rpartition(".")[2]: f"rankernel.{name}"
    for name in (*(name for names in module_lists() for name in names), *rankernel.__all__)
    if name.rpartition(".")[2][0].isupper()
}

# ---------------------------------------------------------------------- appearance

html_theme = "pydata_sphinx_theme"
html_title = "rankernel"
html_static_path = ["_static"]
html_css_files = ["rankernel.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "rankernel"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"start": []}
