"""Settings, all of them from the environment: what is not set is found in the home of the embedded stack.

`NIGHTBELL_HOME` names that home. With `NIGHTBELL_DATABASE_URL` and Temporal's own `TEMPORAL_*` variables the same
commands use servers that exist already. Secrets may come from a file instead (`NIGHTBELL_DATABASE_URL_FILE`,
`TEMPORAL_API_KEY_FILE`) and are never shown.
"""

import os
from pathlib import Path
from typing import Annotated

from platformdirs import user_data_path
from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from nightbell.problems import StackProblem

Port = Annotated[int, Field(ge=0, le=65_535)]


class Settings(BaseSettings):
    """What every command and worker needs to know. A variable that is set to nothing counts as not set."""

    model_config = SettingsConfigDict(
        env_prefix="NIGHTBELL_", extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    home: Path = Field(default_factory=lambda: user_data_path("nightbell"))
    database_url: SecretStr | None = None
    database_url_file: Path | None = None
    temporal_address: str | None = Field(default=None, validation_alias="TEMPORAL_ADDRESS")
    temporal_namespace: str = Field(default="default", validation_alias="TEMPORAL_NAMESPACE")
    temporal_api_key_file: Path | None = Field(default=None, validation_alias="TEMPORAL_API_KEY_FILE")
    task_queue: str = "nightbell"
    files: Path | None = None
    connections_max: int = Field(default=12, ge=2, le=200)
    postgres_port: Port | None = None
    temporal_port: Port | None = None
    ui_port: Port | None = None

    @model_validator(mode="after")
    def read_secret_file(self) -> "Settings":
        """The database URL from its file. Raises StackProblem when that cannot be read."""
        if self.database_url is None and self.database_url_file is not None:
            self.database_url = SecretStr(read_secret("NIGHTBELL_DATABASE_URL_FILE", self.database_url_file))
        return self

    @property
    def files_folder(self) -> Path:
        """Where Patterns keep their files: under the home unless told otherwise."""
        return self.files or self.home / "files"

    def temporal_environment(self) -> dict[str, str]:
        """The environment that Temporal's own configuration is read from (`override_env_vars`): ours, with the API key
        from its file. Raises StackProblem when that cannot be read."""
        found = dict(os.environ)
        if self.temporal_api_key_file is not None and not found.get("TEMPORAL_API_KEY"):
            found["TEMPORAL_API_KEY"] = read_secret("TEMPORAL_API_KEY_FILE", self.temporal_api_key_file)
        return found


def read_secret(variable: str, path: Path) -> str:
    """A secret from its file. Raises StackProblem naming the variable, never the content."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise StackProblem("secret_unreadable", f"{variable} names {path}, which cannot be read.") from problem
