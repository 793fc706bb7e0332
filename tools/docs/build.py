#!/usr/bin/env python3
"""Builds the site of the documentation in target/site, and checks every link and anchor in it, except for those to other sites.

docs/SUMMARY.md lists the pages. mdBook copies every file of the directory in which it looks for pages, so this directory cannot be the
repository, which contains target/. Instead, the pages are written to target/site/src, with the paths that they have in the repository.
Other files and directories to which pages link, such as tests, become plain pages, because browsers do not show files of every type.
"""

import html
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit

TOOLS = {"mdbook": ("0.5.4", "--no-default-features", "--features", "search"), "mdbook-mermaid": ("0.17.1",)}
ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "target/site"
LINK = re.compile(r"\]\(([^)\s]+)\)")
# The name of a test as the text of a link.
NAME = re.compile(r"\[[a-z0-9]+(?:_[a-z0-9]+)+\]\(")
# Pages of crates, which are a part of their documentation, and templates of new plugins.
NOT_IN_THE_BOOK = re.compile(r"host/|plugins/sdk/.+/|docs/SUMMARY.md")


def install():
    """Installs mdBook and its preprocessor for diagrams, once, outside of target/. Returns the environment in which they are found."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    environment = dict(os.environ, RUST_LOG="warn", CARGO_PROFILE_DEV_DEBUG="0", CARGO_INCREMENTAL="0")
    for name, (version, *features) in TOOLS.items():
        tool = cache / f"trainyard/tools/{name}-{version}"
        if not (tool / "bin" / name).exists():
            print(f"installing {name} into {tool}", file=sys.stderr)
            # Without optimization, each takes 60 s of CPU to build, and 3 s to run.
            command = ["cargo", "install", "--quiet", "--debug", "--locked", "--root", tool, name, "--version", version, *features]
            subprocess.run(command, env=environment, check=True)
        environment["PATH"] = f"{tool / 'bin'}{os.pathsep}{environment['PATH']}"
    return environment


def targets(page, text):
    """Returns the links of a page to other files of the repository, each with the path of its file."""
    found = {}
    for link in LINK.findall(text):
        file = urlsplit(link)
        if not file.scheme and file.path:
            found[link] = os.path.normpath(os.path.join(os.path.dirname(page), file.path))
    return found


def tracked(*paths):
    """Returns the files of the repository below these paths, as Git lists them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    files = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
    return sorted(file for file in set(files) if (ROOT / file).is_file())


def plain_page(path, pages):
    """Writes a page that shows a file that is no page itself, or lists the files of a directory. Returns its path."""
    # mdBook replaces `.md` anywhere in a link.
    page = f"{path.removesuffix('.md')}.html"
    if (SITE / "src" / page).exists():
        return page
    if (ROOT / path).is_dir():
        files = tracked(path)
        names = [html.escape(os.path.relpath(file, path)) for file in files]
        shown = [file.removesuffix(".md") + ".html" if file in pages else plain_page(file, pages) for file in files]
        links = [os.path.relpath(file, os.path.dirname(page)) for file in shown]
        items = "".join(f'<li><a href="{html.escape(link)}">{name}</a></li>\n' for link, name in zip(links, names))
        body = f"<h1>{html.escape(path)}</h1>\n<ul>\n{items}</ul>"
    else:
        data = (ROOT / path).read_bytes()
        text = f"{len(data)} bytes, which are not text" if b"\0" in data else data.decode(errors="replace")
        body = f"<h1>{html.escape(path)}</h1>\n<pre>{html.escape(text)}</pre>"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
    write(page, f"<!DOCTYPE html>\n<html lang=\"en\">\n{head}\n<title>{html.escape(path)}</title>\n{body}\n</html>\n")
    return page


def write(path, text):
    file = SITE / "src" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def assemble():
    """Writes the pages and what they link to. Returns what is wrong with them."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    chapters = targets("docs/SUMMARY.md", summary)
    pages = set(chapters.values())
    existing = tracked("*.md")
    wrong = [f"docs/SUMMARY.md: {page} does not exist" for page in sorted(pages.difference(existing))]
    wrong += [f"{page}: is in no chapter of docs/SUMMARY.md" for page in existing
              if page not in pages and not NOT_IN_THE_BOOK.match(page)]
    write("SUMMARY.md", LINK.sub(lambda link: f"]({chapters[link[1]]})", summary))
    for page in sorted(pages.intersection(existing)):
        text = (ROOT / page).read_text()
        for link, path in targets(page, text).items():
            readme = os.path.join(path, "README.md")
            if not (ROOT / path).exists():
                wrong.append(f"{page}: {link} does not exist")
            elif path.endswith(".png"):
                (SITE / "src" / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, SITE / "src" / path)
            elif path not in pages:
                other = readme if readme in pages else plain_page(path, pages)
                text = text.replace(f"]({link})", f"]({os.path.relpath(other, os.path.dirname(page))})")
        # Names may break at each underscore, because tables of tests are wider than a page otherwise.
        write(page, NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), text))
    return wrong


class Links(html.parser.HTMLParser):
    """The links and anchors of a page of the site."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken_links():
    """Returns the links of the site that lead nowhere."""
    site = {file: Links(file.read_text()) for file in sorted((SITE / "html").rglob("*.html"))}
    wrong = []
    for file, page in site.items():
        for link in sorted(page.links):
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            path = pathlib.Path(os.path.normpath(file.parent / unquote(target.path))) if target.path else file
            anchor = unquote(target.fragment)
            if not path.is_file() or (anchor and (path not in site or anchor not in site[path].anchors)):
                wrong.append(f"{file.relative_to(SITE / 'html')}: {link} leads nowhere")
    return wrong


def main():
    """Builds and checks the site."""
    environment = install()
    shutil.rmtree(SITE, ignore_errors=True)
    wrong = assemble()
    if not wrong:
        for name in ("book.toml", "site.css"):
            shutil.copy(ROOT / "tools/docs" / name, SITE)
        subprocess.run(["mdbook-mermaid", "install", SITE], env=environment, check=True)
        subprocess.run(["mdbook", "build", SITE], env=environment, check=True)
        wrong = broken_links()
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"the site is in {SITE / 'html/index.html'}")


if __name__ == "__main__":
    main()
