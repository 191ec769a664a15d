# SPDX-License-Identifier: GPL-2.0-only
"""Make one site of docs/ and of what docs/ links to elsewhere in the tree (mkdocs.yml).

Markdown files from outside docs/ become pages below tree/, other files are put there
as plain text, which every browser shows.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SPDX = "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def place(target: Path) -> str:
    """Where a file of the tree is in the site."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    name = target.relative_to(ROOT).as_posix()
    return f"tree/{name}" if target.suffix in {".md", ".svg"} else f"tree/{name}.txt"


def links(path: Path) -> set[Path]:
    """The files that a document links to."""
    found = {(path.parent / name).resolve() for name, _ in LINK.findall(path.read_text())}
    return {target for target in found if target.is_relative_to(ROOT) and target.is_file()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is linked to, and what that links to."""
    todo = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    seen = set(todo)
    while todo:
        for target in links(todo.pop()) - seen:
            seen.add(target)
            if target.suffix == ".md":
                todo.append(target)
            if not target.is_relative_to(DOCS):
                added = File.generated(config, place(target), abs_src_path=str(target))
                added.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the links lead to where the files are in the site."""
    source = Path(page.file.abs_src_path or "")

    def there(link: re.Match[str]) -> str:
        target = (source.parent / link[1]).resolve()
        if not target.is_file() or not target.is_relative_to(ROOT):
            return link[0]
        name = os.path.relpath(place(target), Path(page.file.src_uri).parent)
        return f"]({name}{link[2] or ''})"

    # A page has its heading for a title only when that comes first.
    return LINK.sub(there, markdown.removeprefix(SPDX))
