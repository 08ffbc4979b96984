#!/usr/bin/env python3
"""site_links.py - for mkdocs (mkdocs.yml): links to files outside docs/ become the files' names.

The pages link to sources and to the benchmark cases, which is right in the repository and leads
nowhere on the site.

SPDX-License-Identifier: Apache-2.0
"""
import re
import sys

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+([^)#]+)[^)]*\)")


def on_page_markdown(markdown, page, config, files):
    """mkdocs calls it for each page."""
    if page.file.src_uri.startswith("decisions/"):
        return re.sub(r"\[([^\]]+)\]\((?:\.\./){2,}([^)#]+)[^)]*\)", r"\1 (`\2`)", markdown)
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)


if __name__ == "__main__":
    print(__doc__.split("SPDX")[0].strip())
    sys.exit(0)
