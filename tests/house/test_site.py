# SPDX-License-Identifier: GPL-2.0-only
"""The documents as a site: every link leads somewhere, nothing comes from another host."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
from said import ROOT, ran

MKDOCS = Path(sys.executable).parent / "mkdocs"
CHROMIUM = shutil.which("chromium")
SECONDS = 120
WIDTHS = (400, 1400)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not MKDOCS.exists(), reason="mkdocs is missing: make site installs it"),
]


def built(to: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    words = ["build", "--strict", "--config-file", config, "--site-dir", to]
    return ran(MKDOCS, *words, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, timeout=SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site")
    done = built(to)
    assert done.returncode == 0, done.stderr
    return to


class Read(HTMLParser):
    """What a page loads, where its links lead, and the places in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        if "id" in found:
            self.places.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif "href" in found:
            self.loads.add(found["href"])
        for name in ("src", "srcset", "poster", "data"):
            if name in found:
                self.loads.add(found[name])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {page: Read(page) for page in sorted(site.rglob("*.html"))}


def outside(url: str) -> bool:
    return bool(re.match(r"(\w+:)?//", url))


def test_every_link_and_anchor_is_there(site: Path, pages: dict[Path, Read]) -> None:
    pages = {page: read for page, read in pages.items() if page.name != "404.html"}
    seen = 0
    for page, read in pages.items():
        for link in read.links | read.loads:
            if outside(link) or link.startswith("data:"):
                continue
            name, anchor = urldefrag(unquote(link))
            to = (page.parent / name).resolve() if name else page
            to = to / "index.html" if to.is_dir() else to
            assert to.is_relative_to(site) and to.is_file(), f"{page.name}: {link}"
            # "#" and "#__..." are the theme's.
            if anchor and to.suffix == ".html" and not anchor.startswith("__"):
                assert anchor in pages[to].places, f"{page.name}: {link}"
                seen += 1
    assert seen > 200


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Read]) -> None:
    for page, read in pages.items():
        assert not [load for load in read.loads if outside(load)], page.name
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", sheet.read_text())


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text("# Here\n\n[there](README.md#nowhere)\n")
    config = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[0]
    config.write_text(text.replace("[tools/site_hook.py]", f"[{ROOT / 'tools/site_hook.py'}]"))
    done = built(tmp_path / "site", config)
    assert done.returncode and "#nowhere" in done.stderr


def test_every_document_is_in_the_navigation_and_the_index() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    index = (ROOT / "docs" / "README.md").read_text()
    docs = ROOT / "docs"
    for path in sorted(docs.rglob("*.md")):
        name = path.relative_to(docs).as_posix()
        assert f"- {name}\n" in navigation, name
        # hosts/ and results/ have indexes of their own.
        listed = path.parent.name in ("hosts", "results") and path.name != "README.md"
        assert f"]({name})" in index or listed or path == docs / "README.md", name


def test_five_documents_are_on_the_first_level() -> None:
    """The others are in folders, by reader."""
    first = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert first == {"README.md", "INSTALL.md", "FAQ.md", "TROUBLESHOOTING.md", "GLOSSARY.md"}


def test_the_readers_paths_have_three_pages_each() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    index = (ROOT / "docs" / "README.md").read_text()
    for reader in ("I run disks", "I review the kernel part", "I do research"):
        listed = re.findall(
            r"- ([\w/-]+\.md)$", navigation.partition(f"- {reader}:\n")[2], re.MULTILINE
        )
        part = index.partition(f"\n## {reader}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\d\. \[[^]]*\]\(([\w/]+\.md)\): .*", part, re.MULTILINE) == listed[:3]


def test_mkdocs_is_pinned() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert any(line.startswith("mkdocs-material==") for line in extras["site"])


# ---- in a browser ----

# Opens each page in a frame of each width, and a search.
LOOK = """<!DOCTYPE html><body><script>
const names = %s, widths = %s, out = {};
const frame = (url, width) => new Promise((done) => {
	const one = document.createElement("iframe");
	one.width = width;
	one.height = 900;
	one.src = url;
	one.onload = () => setTimeout(() => done(one), 50);
	document.body.append(one);
});
(async () => {
	for (const name of names)
		for (const width of widths) {
			const one = await frame(name, width);
			const page = one.contentDocument.documentElement;
			out[name + " " + width] = {
				wide: page.scrollWidth,
				seen: page.clientWidth,
				loads: [...page.querySelectorAll("link, [src]")].map((tag) => tag.src || tag.href),
			};
			one.remove();
		}
	const one = await frame("index.html?q=starvation", 1400);
	for (let turn = 0; turn < 100 && !out.found?.length; turn++) {
		await new Promise((done) => setTimeout(done, 100));
		out.found = [...one.contentDocument.querySelectorAll(".md-search-result__link")]
			.map((link) => link.href);
	}
	const text = document.createElement("pre");
	text.id = "out";
	text.textContent = JSON.stringify(out);
	document.body.append(text);
})();
</script>
"""


@pytest.fixture(scope="module")
def seen(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names = [page.relative_to(site).as_posix() for page in sorted(site.rglob("*.html"))]
    names.remove("404.html")
    look = site / "look.html"
    look.write_text(LOOK % (json.dumps(names), json.dumps(WIDTHS)))
    done = ran(
        str(CHROMIUM),
        *["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        *["--no-first-run", "--allow-file-access-from-files", "--hide-scrollbars"],
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
        *["--virtual-time-budget=120000", "--dump-dom", f"file://{look}"],
        timeout=SECONDS,
        check=True,
    )
    look.unlink()
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: install the Debian package chromium"
)


@needs_chromium
def test_no_page_is_wider_than_the_screen(seen: dict[str, Any]) -> None:
    pages = {name: one for name, one in seen.items() if ".html" in name}
    assert len(pages) > 60
    assert not [name for name, one in pages.items() if one["wide"] > one["seen"]]


@needs_chromium
def test_pages_load_files_only(seen: dict[str, Any]) -> None:
    for name, one in seen.items():
        if ".html" in name:
            assert len(one["loads"]) > 4
            assert not [url for url in one["loads"] if not url.startswith("file:")], name


@needs_chromium
def test_the_search_finds_something_without_a_server(seen: dict[str, Any]) -> None:
    assert any("GLOSSARY.html" in link for link in seen["found"])
