"""Sphinx: the pages of this folder, and the reference that Doxygen reads from the public headers."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = (ROOT / "include/raffia/version.h").read_text(encoding="utf-8")

project = "Raffia"
release = ".".join(re.findall(r"#define RAFFIA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER))
version = release
html_show_copyright = False

extensions = ["breathe", "myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

breathe_projects = {"raffia": str(ROOT / "build/docs/doxygen/xml")}
breathe_default_project = "raffia"
breathe_default_members = ("members",)
breathe_domain_by_extension = {"h": "c"}
breathe_show_define_initializer = True
primary_domain = "c"
highlight_language = "c"

html_theme = "alabaster"
html_title = f"Raffia {release}"
html_theme_options = {
    "description": "Memory in verified huge pages, and model files loaded into it",
    "fixed_sidebar": True,
    "page_width": "64rem",
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_copy_source = False
