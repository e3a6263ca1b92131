"""Sphinx's configuration for scripts/docs: README.md and the pages under docs/ as one site.

The sources are read as they are in the repository. Two things are done to each page while it is
read: the README gets the list of pages for the sidebar, and links to files that are not pages
(examples, results, headers) lead to the files of this checkout. A link to a file that does not
exist is a warning, as Sphinx's own are, and scripts/docs fails on warnings."""

import os
import re
from pathlib import Path

from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent.parent

project = "vt"
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["README.md", "docs/**.md"]
exclude_patterns = ["build*", ".git", ".cache"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # signatures are not always whole C++

html_theme = "furo"
html_title = "vt"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
# Summaries are fetched page by page, which browsers refuse for files.
html_show_search_summary = False
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"


def is_page(path):
    relative = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return path.suffix == ".md" and (relative == "README.md" or relative.startswith("docs/"))


def toctree(caption, pages):
    lines = [f":caption: {caption}", ":hidden:", ":titlesonly:", "", *pages]
    return "\n".join(["", "```{toctree}", *lines, "```", ""]) if pages else ""


def sidebar():
    """The pages of docs/api in the order of its README, and the others."""
    interface = ROOT / "docs" / "api" / "README.md"
    rows = re.findall(r"^\| \[[^]]*\]\((\w+)\.md\)", interface.read_text(encoding="utf-8"), re.M)
    public = ["docs/api/README", *(f"docs/api/{name}" for name in rows)]
    others = [
        page.relative_to(ROOT).with_suffix("").as_posix()
        for folder in (ROOT / "docs", ROOT / "docs" / "internals")
        for page in sorted(folder.glob("*.md"))
    ]
    return toctree("Public interface", public) + toctree("How it works", others)


def read_source(app, docname, source):
    page = ROOT / (docname + ".md")

    def link(m):
        text, target = m.group(1), m.group(2)
        if re.match(r"[a-z]+:|#", target):
            return m.group(0)
        path = (page.parent / target.split("#")[0]).resolve()
        if is_page(path):
            return m.group(0)  # Sphinx checks it
        if not path.exists():
            logging.getLogger(__name__).warning(
                "a link to %s, which does not exist", target, location=docname
            )
        # From the page's place in the site to the file in the checkout.
        here = Path(app.outdir).joinpath(*docname.split("/")[:-1])
        return f'<a href="{os.path.relpath(path, here)}">{text}</a>'

    parts = re.split(r"(^```.*?^```$)", source[0], flags=re.S | re.M)
    parts[::2] = [re.sub(r"\[([^][]*)\]\(([^)\s]+)\)", link, part) for part in parts[::2]]
    source[0] = "".join(parts) + (sidebar() if docname == root_doc else "")


def setup(app):
    app.connect("source-read", read_source)
