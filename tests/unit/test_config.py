"""Sources of settings, their order, and the values that are refused."""

from pathlib import Path

import pytest

from penstock.config import SETTINGS, Loaded, Settings, load, mask_url
from penstock.errors import Invalid, Malformed, PenstockError

KEY = "pk_7d1f0c"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with only a home folder."""
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_any_source_every_value_is_its_default(
    home: dict[str, str], tmp_path: Path
) -> None:
    loaded = load({}, home, tmp_path)
    folder = tmp_path / "home/.local/share/penstock"
    assert loaded.settings == Settings(
        database=f"sqlite:///{folder}/penstock.db",
        objects=f"file://{folder}/objects",
        ingest_folder=f"{folder}/ingest",
    )
    assert set(loaded.origins.values()) == {"default"}
    assert set(loaded.origins) == set(SETTINGS)
    assert not folder.exists()


def test_the_default_values_are_the_documented_ones(home: dict[str, str], tmp_path: Path) -> None:
    settings = load({}, home, tmp_path).settings
    assert (settings.host, settings.port, settings.insecure) == ("127.0.0.1", 5000, False)
    assert settings.url == "http://127.0.0.1:5000"
    assert settings.body_bytes_max == 67_108_864
    assert (settings.name_length_max, settings.json_depth_max) == (1024, 64)
    assert (settings.queue_length_max, settings.batch_events_max) == (4096, 256)
    assert (settings.log_level, settings.log_format, settings.api_key) == ("info", "text", None)


def test_a_flag_beats_the_environment_which_beats_the_file(
    home: dict[str, str], tmp_path: Path
) -> None:
    path = write(tmp_path / "penstock.toml", 'port = 1\nlog_level = "error"\nhost = "::1"\n')
    environ = home | {"PENSTOCK_PORT": "2", "PENSTOCK_LOG_LEVEL": "DEBUG"}
    loaded = load({"port": 3, "log_format": None}, environ, tmp_path)
    settings = loaded.settings
    assert (settings.port, settings.log_level, settings.host) == (3, "debug", "::1")
    assert loaded.origins["port"] == "flag --port"
    assert loaded.origins["log_level"] == "environment PENSTOCK_LOG_LEVEL"
    assert loaded.origins["host"] == f"file {path}"
    assert loaded.origins["log_format"] == "default"


def test_a_flag_is_named_as_it_is_written(home: dict[str, str], tmp_path: Path) -> None:
    loaded = load({"log_level": "debug", "insecure": True}, home, tmp_path)
    assert loaded.origins["log_level"] == "flag --log-level"
    assert loaded.settings.insecure is True


def test_the_file_is_the_given_one_or_the_nearest(home: dict[str, str], tmp_path: Path) -> None:
    in_home = write(tmp_path / "home/.config/penstock/penstock.toml", "port = 1")
    assert load({}, home, tmp_path).origins["port"] == f"file {in_home}"
    in_xdg = write(tmp_path / "xdg/penstock/penstock.toml", "port = 2")
    environ = home | {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load({}, environ, tmp_path).origins["port"] == f"file {in_xdg}"
    in_cwd = write(tmp_path / "penstock.toml", "port = 3")
    assert load({}, environ, tmp_path).origins["port"] == f"file {in_cwd}"
    by_environment = write(tmp_path / "four.toml", "port = 4")
    environ["PENSTOCK_CONFIG"] = str(by_environment)
    assert load({}, environ, tmp_path).origins["port"] == f"file {by_environment}"
    write(tmp_path / "five.toml", "port = 5")
    assert load({"config": "five.toml"}, environ, tmp_path).settings.port == 5


def test_the_data_folder_follows_xdg(home: dict[str, str], tmp_path: Path) -> None:
    with_xdg = load({}, home | {"XDG_DATA_HOME": "/srv/data"}, tmp_path).settings
    assert with_xdg.database == "sqlite:////srv/data/penstock/penstock.db"
    relative = load({}, home | {"XDG_DATA_HOME": "data"}, tmp_path).settings
    assert relative.database == f"sqlite:///{home['HOME']}/.local/share/penstock/penstock.db"


def test_an_empty_variable_counts_as_unset(home: dict[str, str], tmp_path: Path) -> None:
    loaded = load({}, home | {"PENSTOCK_PORT": "", "PENSTOCK_API_KEY_FILE": ""}, tmp_path)
    assert loaded.settings.port == 5000
    assert loaded.origins["port"] == "default"


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("true", True), ("off", False), ("0", False)]
)
def test_a_boolean_variable_accepts_common_spellings(
    text: str, value: bool, home: dict[str, str], tmp_path: Path
) -> None:
    assert load({}, home | {"PENSTOCK_INSECURE": text}, tmp_path).settings.insecure is value


@pytest.mark.parametrize("name", ["api_key", "database"])
def test_a_secret_can_be_read_from_a_file(name: str, home: dict[str, str], tmp_path: Path) -> None:
    variable = f"PENSTOCK_{name.upper()}_FILE"
    path = write(tmp_path / "secret", f"{KEY}\n")
    loaded = load({}, home | {variable: str(path)}, tmp_path)
    assert getattr(loaded.settings, name) == KEY
    assert loaded.origins[name] == f"environment {variable}"


def test_a_secret_given_twice_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    environ = home | {"PENSTOCK_API_KEY": KEY, "PENSTOCK_API_KEY_FILE": "/run/key"}
    with pytest.raises(Invalid, match="PENSTOCK_API_KEY and PENSTOCK_API_KEY_FILE are both set"):
        load({}, environ, tmp_path)


def test_a_secret_file_that_is_missing_or_empty_is_refused(
    home: dict[str, str], tmp_path: Path
) -> None:
    missing = home | {"PENSTOCK_API_KEY_FILE": str(tmp_path / "none")}
    with pytest.raises(Invalid, match=r"PENSTOCK_API_KEY_FILE names .*/none, .*No such file"):
        load({}, missing, tmp_path)
    empty = home | {"PENSTOCK_API_KEY_FILE": str(write(tmp_path / "empty", "\n"))}
    with pytest.raises(Invalid, match="PENSTOCK_API_KEY_FILE: api_key must be non-empty text"):
        load({}, empty, tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("prot = 1", "unknown setting 'prot'; did you mean port?"),
        ("zzz = 1", "unknown setting 'zzz'; the settings are host, port, database"),
        ('port = "5000"', "port must be an integer from 0 to 65535, not '5000'"),
        ("port = 65536", "port must be an integer from 0 to 65535, not 65536"),
        ("port = true", "port must be an integer from 0 to 65535, not True"),
        ("port = 1.5", "port must be an integer from 0 to 65535, not 1.5"),
        (
            "name_length_max = 6000",
            "name_length_max must be an integer from 1 to 1024, not 6000",
        ),
        ("batch_events_max = 0", "batch_events_max must be an integer, at least 1, not 0"),
        ("insecure = 1", "insecure must be true or false, not 1"),
        ('host = ""', "host must be non-empty text, not ''"),
        ("[host]", "host must be non-empty text, not {}"),
        ('log_format = "xml"', "log_format must be one of text, json, not 'xml'"),
        ('url = "localhost:5000"', "url must be text that begins with http:// or https://"),
    ],
)
def test_an_error_in_the_file_names_key_and_remedy(
    line: str, message: str, home: dict[str, str], tmp_path: Path
) -> None:
    path = write(tmp_path / "penstock.toml", line)
    with pytest.raises(Invalid) as refusal:
        load({}, home, tmp_path)
    assert str(path) in str(refusal.value)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("variable", "text"),
    [("PORT", "70000"), ("PORT", "http"), ("PORT", "-1"), ("INSECURE", "maybe")],
)
def test_the_error_for_a_bad_variable_names_it(
    variable: str, text: str, home: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(Invalid, match=f"^environment PENSTOCK_{variable}: .* must be .*{text}"):
        load({}, home | {f"PENSTOCK_{variable}": text}, tmp_path)


def test_the_error_for_a_bad_flag_names_it(home: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"^flag --log-format: log_format must be one of text, json"):
        load({"log_format": "yaml"}, home, tmp_path)


def test_a_file_that_is_not_toml_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "penstock.toml", "port: 5000")
    with pytest.raises(Malformed, match=r"penstock\.toml is not TOML: .*write lines like"):
        load({}, home, tmp_path)


def test_a_missing_settings_file_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"/none\.toml cannot be read: No such file.*--config"):
        load({"config": tmp_path / "none.toml"}, home, tmp_path)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:pw@db:5432/x", "postgresql://ann:********@db:5432/x"),
        ("postgresql://ann:p/w?@#@db/x", "postgresql://ann:********@db/x"),
        ("postgresql://:pw@db/x", "postgresql://:********@db/x"),
        (
            "postgresql://db/x?user=ann&password=pw&sslmode=require",
            "postgresql://db/x?user=ann&password=********&sslmode=require",
        ),
        ("postgresql://db/x?sslpassword=pw", "postgresql://db/x?sslpassword=********"),
        ("postgresql://ann@db:5432/x", "postgresql://ann@db:5432/x"),
        (
            "jdbc:sqlserver://db;user=ann;password=pw;a=b",
            "jdbc:sqlserver://db;user=ann;password=********;a=b",
        ),
        ("jdbc:oracle:thin:ann/pw@db:1521:x", "jdbc:oracle:thin:ann/********@db:1521:x"),
        ("snowflake://x/?warehouse=w&Token=pw", "snowflake://x/?warehouse=w&Token=********"),
        (
            "s3://b/?aws_secret_access_key=pw&region=r",
            "s3://b/?aws_secret_access_key=********&region=r",
        ),
        ("sqlite:////srv/penstock.db", "sqlite:////srv/penstock.db"),
    ],
)
def test_a_password_in_a_database_url_is_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def secrets_of(home: dict[str, str], tmp_path: Path) -> Loaded:
    flags = {"database": f"postgresql://ann:{KEY}@db/x", "api_key": KEY}
    return load(flags, home, tmp_path)


def test_secrets_appear_neither_in_the_list_nor_in_repr(
    home: dict[str, str], tmp_path: Path
) -> None:
    loaded = secrets_of(home, tmp_path)
    lines = {line.name: line for line in loaded.shown()}
    assert KEY not in repr(lines)
    assert KEY not in repr(loaded)
    assert lines["database"].value == "postgresql://ann:********@db/x"
    assert lines["api_key"].value == "********"
    assert lines["api_key"].origin == "flag --api-key"


def test_a_refused_secret_is_not_quoted(home: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "penstock.toml", f'api_key = ["{KEY}"]')
    with pytest.raises(PenstockError) as refusal:
        load({}, home, tmp_path)
    assert KEY not in str(refusal.value)
    assert "api_key must be non-empty text" in str(refusal.value)


def test_every_setting_is_listed_with_one_line_of_help(
    home: dict[str, str], tmp_path: Path
) -> None:
    lines = load({}, home, tmp_path).shown()
    assert [line.name for line in lines] == list(SETTINGS)
    for line in lines:
        assert line.help
        assert "\n" not in line.help
    assert {line.name: line.value for line in lines}["api_key"] is None
