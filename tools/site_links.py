#!/usr/bin/env python3
"""site_links.py - for mkdocs (mkdocs.yml): links to files outside docs/ become the files' names.

The pages link to sources and to the benchmark cases, which is right in the repository and leads
nowhere on the site. In a heading the text of the link alone is left.

SPDX-License-Identifier: Apache-2.0
"""
import re
import sys

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+([^)#]+)[^)]*\)")
OUTSIDE_OF_DECISIONS = re.compile(r"\[([^\]]+)\]\((?:\.\./){2,}([^)#]+)[^)]*\)")


def on_page_markdown(markdown, page, config, files):
    """mkdocs calls it for each page."""
    def named(link):
        line = markdown.rfind("\n", 0, link.start()) + 1
        return link[1] if markdown[line] == "#" else f"{link[1]} (`{link[2]}`)"
    inside = page.file.src_uri.startswith("decisions/")
    return (OUTSIDE_OF_DECISIONS if inside else OUTSIDE).sub(named, markdown)


if __name__ == "__main__":
    print(__doc__.split("SPDX")[0].strip())
    sys.exit(0)
