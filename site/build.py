"""Builds the site: gathers its pages, has the program make the gallery, generates, and follows every link.

Pages lie in target/site/pages as in the repository, so that their links lead to the same places.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "target/site/pages"
HTML = ROOT / "target/site/html"
#: Parts of the repository that are pages, or that pages show or link to.
PARTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE-APACHE", "LICENSE-MIT",
         "docs", "benchmarks/record", "python/notebooks"]
#: Pages of the site alone.
OWN = ["gallery.md", "reference.md", "style.css"]


def gather() -> None:
    """Copies the parts into an empty folder."""
    shutil.rmtree(PAGES.parent, ignore_errors=True)
    for part in PARTS:
        source, target = ROOT / part, PAGES / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
        else:
            shutil.copy(source, target)
    for name in OWN:
        shutil.copy(ROOT / "site" / name, PAGES / name)


def make_gallery(program: Path) -> None:
    """Runs the commands of the gallery's page, in the folder where it looks for pictures."""
    folder = PAGES / "gallery"
    folder.mkdir()
    environment = os.environ | {"ALLPAIRS_LIBCUDA": "none", "ALLPAIRS_CACHE_DIR": str(PAGES.parent / "cache")}
    text = (PAGES / "gallery.md").read_text()
    for line in text.splitlines():
        if not line.startswith("$ allpairs "):
            continue
        command = [str(program), *shlex.split(line.removeprefix("$ allpairs "))]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{line}\n{done.stdout}{done.stderr}")
    # Runs themselves are not shown.
    for settings in folder.glob("*/run.toml"):
        shutil.rmtree(settings.parent)


def generate() -> None:
    """Generates the site; each warning of the generator is an error."""
    has_package = any((ROOT / "python/allpairs").glob("_native*.so"))
    if not has_package:
        print("Notebooks are not run: Python's package is not built", file=sys.stderr)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "python"),
        "ALLPAIRS_SITE_RUNS_NOTEBOOKS": "true" if has_package else "false",
        "ALLPAIRS_LIBCUDA": "none",
        # The theme's authors advertise another generator.
        "NO_MKDOCS_2_WARNING": "true",
        "DISABLE_MKDOCS_2_WARNING": "true",
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(ROOT / "site/mkdocs.yml")]
    # The generator keeps a cache in the folder in which it runs.
    done = subprocess.run(command, cwd=PAGES.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)


class Page(HTMLParser):
    """Links of a page, and the names in it that links may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key in ("href", "src"):
                self.links.append(value)
            elif value and (key == "id" or (tag == "a" and key == "name")):
                self.names.add(value)


def dead_links() -> list[str]:
    """Links of the generated pages that lead nowhere. Addresses of other sites are not followed."""
    pages = {path: Page(path) for path in HTML.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        # The page of the program has its own scripts, and the page for errors is shown anywhere.
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                dead.append(f"{path.relative_to(HTML)}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                dead.append(f"{path.relative_to(HTML)}: {link}: no such place on that page")
    if len(pages) < 30:
        dead.append(f"only {len(pages)} pages")
    return dead


def main() -> None:
    start = time.monotonic()

    def step(name: str) -> None:
        print(f"{time.monotonic() - start:5.1f} s  {name}", flush=True)

    step("gather")
    gather()
    step("gallery")
    make_gallery(Path(sys.argv[1]))
    step("generate")
    generate()
    step("links")
    dead = dead_links()
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))
    files = [path for path in HTML.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    step(f"{HTML.relative_to(ROOT)}: {len(files)} files, {size:.1f} MB")


main()
