"""Common parts of every page: style, content security policy, and safe embedding of data.

A page is one file that loads nothing. Its content security policy names the hashes of its own script and style, so that nothing
else runs even if a dialogue holds markup; in addition, every text is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from dialeval_plugin.version import __version__


def render_page(package: str, name: str, filters: dict[str, Any], /, **fields: Any) -> str:
    """Return the page of the template `name.html` in the folder `static` of a package.

    Its script is `page.js` and `name.js`, its style `page.css` and `name.css`; `page.*` are in this package and shared.

    Args:
        package: for example `dialeval_plugin.leaderboard`.
        name: name of the files, without a suffix.
        filters: filters of the template, by name.
        fields: values for the template.
    """
    loaders = [jinja2.PackageLoader(one, "static") for one in (package, __package__)]
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    script, style = (
        static_text(__package__, f"page.{kind}") + static_text(package, f"{name}.{kind}") for kind in ("js", "css")
    )
    html = environment.get_template(f"{name}.html").render(
        **fields,
        script=Markup(script),  # noqa: S704 - the package's own files
        style=Markup(style),  # noqa: S704
        script_hash=_csp_hash(script),
        style_hash=_csp_hash(style),
        version=__version__,
    )
    # A dialogue may hold half of a surrogate pair, which a file cannot.
    return html.encode("utf-8", "replace").decode("utf-8")


def script_data(value: Any) -> Markup:
    """Return JSON for the inside of a script element, without characters that could end the element or a string in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped)  # noqa: S704 - escaped in the line above


def static_text(package: str, name: str) -> str:
    """Return the text of a file in the folder `static` of a package."""
    return resources.files(package).joinpath("static", name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
