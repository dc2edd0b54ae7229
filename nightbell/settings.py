"""Settings, all of them from the environment: what is not set is found in the home of the embedded stack.

`NIGHTBELL_HOME` names that home. With `NIGHTBELL_DATABASE_URL` and Temporal's own `TEMPORAL_*` variables the same commands
use servers that exist already. Secrets may come from a file instead (`NIGHTBELL_DATABASE_URL_FILE`) and are never shown.
"""

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What every command and worker needs to know."""

    model_config = SettingsConfigDict(extra="ignore", populate_by_name=True)

    home: Path = Field(default_factory=lambda: user_data_path("nightbell"), validation_alias="NIGHTBELL_HOME")
    database_url: SecretStr | None = Field(default=None, validation_alias="NIGHTBELL_DATABASE_URL")
    database_url_file: Path | None = Field(default=None, validation_alias="NIGHTBELL_DATABASE_URL_FILE")
    temporal_address: str | None = Field(default=None, validation_alias="TEMPORAL_ADDRESS")
    temporal_namespace: str = Field(default="default", validation_alias="TEMPORAL_NAMESPACE")
    task_queue: str = Field(default="nightbell", validation_alias="NIGHTBELL_TASK_QUEUE")
    files: Path | None = Field(default=None, validation_alias="NIGHTBELL_FILES")
    connections_max: int = Field(default=12, ge=2, le=200, validation_alias="NIGHTBELL_CONNECTIONS_MAX")

    @model_validator(mode="after")
    def read_secret_file(self) -> "Settings":
        if self.database_url is None and self.database_url_file is not None:
            self.database_url = SecretStr(self.database_url_file.read_text().strip())
        return self

    @property
    def files_folder(self) -> Path:
        """Where Patterns keep their files: under the home unless told otherwise."""
        return self.files or self.home / "files"
