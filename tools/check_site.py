"""Links of the built site that lead nowhere: python tools/check_site.py build/site

Sphinx checks the links of the sources. What a reader follows are those of the pages: also those of the theme, and those
to a page that another one of the same name has overwritten.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Page(HTMLParser):
    """What a page points to, and where one can point to in it."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=lambda: {"", "top"})

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect targets and ids."""
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def read_page(path: Path) -> Page:
    """A page as it was built."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def pages_of(site: Path) -> list[Path]:
    """The pages of a site; the theme keeps templates among its own files."""
    return sorted(path for path in site.rglob("*.html") if path.relative_to(site).parts[0] != "_static")


def broken_links(site: Path) -> list[str]:
    """One sentence for each link to a file or an anchor that is not there; links to other hosts are not followed."""
    pages = {path.resolve(): read_page(path) for path in pages_of(site)}
    found = set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = path.relative_to(site.resolve())
            if not target.is_file():
                found.add(f"{place}: '{link}' leads to no file.")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.add(f"{place}: '{link}' names no place of that page.")
    return sorted(found)


def main() -> None:
    """Print what is broken, and fail if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    site = parser.parse_args().site
    n_pages = len(pages_of(site))
    if not n_pages:
        sys.exit(f"'{site}' has no pages. Build it first: make docs")
    broken = broken_links(site)
    print("\n".join(broken) or f"{n_pages} pages, no broken link.")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
