"""Parts of the site that the generator does not do by itself."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Sections, and the pages of each in order. A pattern stands for all further pages that it fits.
SECTIONS: list[tuple[str, list[str]]] = [
    ("Start", ["README.md", "gallery.md", "CHANGELOG.md"]),
    ("Guides", ["docs/guide.md", "docs/collisional.md", "docs/clusters.md", "docs/clusters-of-machines.md", "docs/files.md", "docs/format.md",
                "docs/accuracy.md", "docs/citing.md", "docs/*.md"]),
    ("Python", ["docs/python.md", "docs/amuse.md", "python/notebooks/*.ipynb", "reference.md"]),
    ("Rust", ["docs/tutorial.md", "docs/kernels.md", "docs/emulator.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/releasing.md"]),
    ("Studies", ["docs/studies/README.md", "docs/studies/*.md"]),
    ("Measurements", ["benchmarks/record/README.md", "benchmarks/record/*/*.md"]),
]


def on_config(config: Any) -> Any:
    """Makes the navigation of the pages that there are."""
    folder = Path(config["docs_dir"])
    named = {page for _, pages in SECTIONS for page in pages if "*" not in page}
    config["nav"] = []
    for title, patterns in SECTIONS:
        pages = []
        for pattern in patterns:
            found = [str(path.relative_to(folder)) for path in sorted(folder.glob(pattern))]
            pages += [page for page in found if page not in pages and ("*" not in pattern or page not in named)]
        config["nav"].append({title: pages})
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Makes a page of the repository one of the site."""
    return indented(links_to_files(markdown, page.file.src_uri, config.repo_url, files))


def links_to_files(markdown: str, page: str, repository: str | None, files: Any) -> str:
    """Leads links to other files and to folders of the repository there, or removes them where its address is unknown."""

    def replaced(link: re.Match[str]) -> str:
        text, target = link.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target.split("#")[0]))
        if files.get_file_from_path(path) or not (ROOT / path).exists():
            return link[0]
        return f"[{text}]({repository}/blob/main/{path})" if repository else text

    # The generator takes no definitions of links with names in backticks.
    definition = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
    defined = dict(definition.findall(markdown))
    parts = re.split(r"(^```.*?^```$)", definition.sub("", markdown), flags=re.MULTILINE | re.DOTALL)
    for index in range(0, len(parts), 2):
        for name, target in defined.items():
            parts[index] = re.sub(rf"(?<!!){re.escape(f'[{name}]')}(?![(\[])", f"[{name}]({target})", parts[index])
        parts[index] = re.sub(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)", replaced, parts[index])
    return "".join(parts)


def indented(markdown: str) -> str:
    """Indents what belongs to an item of a list by four spaces, as the generator wants it: CommonMark takes two."""
    lines, indent, is_code = [], 0, False
    for line in markdown.split("\n"):
        spaces = len(line) - len(line.lstrip(" "))
        rest = line[spaces:]
        item = re.match(r"(?:[*-]|\d+\.) +", rest)
        if not is_code and rest and spaces < indent and not item:
            indent = 0
        inside = indent > 0 and spaces >= indent
        lines.append(" " * (4 - indent) + line if inside else line)
        if rest.startswith("```"):
            is_code = not is_code
        elif not is_code and item and spaces == 0:
            indent = len(item[0])
    return "\n".join(lines)
