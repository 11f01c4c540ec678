"""Markdown as GitHub shows it, as far as its public parts go: cmark-gfm, then a sanitiser.

``python -m tests.render.github_like SAMPLE FILE.html`` writes a sample as a page to look at in a
browser; ``docs/images/pr-comment.png`` is such a page of the example's ``regressed`` variant,
photographed by ``chromium --headless --screenshot``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cmarkgfm
import nh3
from cmarkgfm.cmark import Options

# html-pipeline, SanitizationFilter: what GitHub lets through and a report could use.
_TAG_NAMES = (
    "a,b,blockquote,br,code,dd,del,details,div,dl,dt,em,h1,h2,h3,h4,h5,h6,hr,i,img,ins,kbd,li,ol,p,"
    "pre,q,s,samp,span,strike,strong,sub,summary,sup,table,tbody,td,th,thead,tr,tt,ul,var"
)
_TAGS = set(_TAG_NAMES.split(","))
_ATTRIBUTES = {
    "a": {"href"},
    "img": {"src", "alt"},
    "details": {"open"},
    "td": {"align"},
    "th": {"align"},
    "pre": {"lang"},
}
_STYLE = """
body { font: 14px/1.5 "Liberation Sans", Arial, sans-serif; color: #1f2328; background: #fff;
  width: 860px; margin: 0; padding: 16px; box-sizing: border-box }
h2 { font-size: 21px; border-bottom: 1px solid #d1d9e0b3; padding-bottom: 6px; margin: 0 0 16px }
h3 { font-size: 17px; margin: 24px 0 16px }
p, ul, pre, table, details { margin: 0 0 14px }
ul { padding-left: 28px }
table { border-collapse: collapse; display: block; overflow: auto }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
tr:nth-child(2n) td { background: #f6f8fa }
code, pre { font: 12px/1.45 "DejaVu Sans Mono", monospace }
code { background: #818b981f; border-radius: 6px; padding: 2.4px 4.8px }
pre { background: #f6f8fa; border-radius: 6px; padding: 14px }
pre code { background: none; padding: 0 }
blockquote { border-left: 4px solid #d1d9e0; color: #59636e; margin: 0 0 14px; padding: 0 14px }
sub { font-size: 75% }
"""


def rendered(markdown: str) -> str:
    """Return the sanitised HTML of a comment."""
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_GITHUB_PRE_LANG
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, options)
    return nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, link_rel=None)


def page(markdown: str) -> str:
    """Return a whole page that looks like a comment on a pull request."""
    return f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>{rendered(markdown)}"


if __name__ == "__main__":
    from ci_gate.render.markdown import markdown as written
    from ci_gate.render.view import view
    from tests.render import samples

    sample = getattr(samples, sys.argv[1])()
    verdicts = sample if isinstance(sample, list) else [sample]
    Path(sys.argv[2]).write_text(page(written(view(verdicts))), encoding="utf-8")
