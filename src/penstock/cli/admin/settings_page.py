"""Print docs/settings.md from the settings in `config.py`."""

import sys
from collections.abc import Iterator
from dataclasses import fields

from penstock.config import (
    SETTINGS,
    Settings,
    default_database,
    default_ingest_folder,
    default_objects,
)

_OPENING = """# Settings

Made by `python -m penstock.cli.admin.settings_page > docs/settings.md` from the table in \
`src/penstock/config.py`: change it there.

A flag (`--log-level`) beats the environment (`PENSTOCK_LOG_LEVEL`), which beats the file \
(`log_level = "debug"` in `penstock.toml`), which beats the default. The file is the one that \
`--config` or `PENSTOCK_CONFIG` names, else `penstock.toml` here, else in \
`~/.config/penstock/`. A secret may be in a file of its own, which \
`PENSTOCK_…_FILE` names. `penstock config show` says what holds, and where it came from.

| setting | what it is | what to write | default |
|---|---|---|---|
"""
_HOME = {"HOME": "~"}
_IN_THE_HOME = {
    "database": default_database(_HOME),
    "objects": default_objects(_HOME),
    "ingest_folder": default_ingest_folder(_HOME),
}


def document() -> str:
    """The text of docs/settings.md."""
    return _OPENING + "".join(_lines())


def _lines() -> Iterator[str]:
    for setting in fields(Settings):
        about = SETTINGS[setting.name]
        secret = " (a secret)" if about.secret else ""
        also = f"; also `{about.variable}`" if about.variable else ""
        default = _shown(_IN_THE_HOME.get(setting.name, setting.default))
        cells = (f"`{setting.name}`", f"{about.help}{secret}{also}", about.expected, default)
        yield f"| {' | '.join(cells)} |\n"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    sys.stdout.write(document())
