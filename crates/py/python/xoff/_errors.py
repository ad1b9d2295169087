"""The exceptions of xoff. Their words are those of the command line."""

from __future__ import annotations


class Error(Exception):
    """Everything that xoff raises, except KeyboardInterrupt.

    Attributes
    ----------
    message
        What is wrong.
    remedy
        The correction or the allowed values, if any.

    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        self.message = message
        self.remedy = remedy or None
        super().__init__(message)

    def place(self) -> str:
        """Say where the error is; empty if that is unknown."""
        return ""

    def __str__(self) -> str:
        help = f"\nhelp: {self.remedy}" if self.remedy else ""
        return f"{self.place()}{self.message}{help}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross processes, such as those of a pool.
        return type(self).__new__, (type(self), self.message), self.__dict__


class ScenarioError(Error, ValueError):
    """A scenario or an argument is wrong.

    Attributes
    ----------
    file
        The file, or `--set key=value`; empty if the error is not in a scenario.
    line, column
        Where it is in the file, both from 1; None if it is not at one place.
    key
        The key that is wrong, such as `traffic[0].load`; None if it is not a key.

    """

    def __init__(
        self,
        message: str,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, remedy)
        self.file = file
        self.line = line
        self.column = column
        self.key = key

    def place(self) -> str:
        """Say file, line and column, as far as they are known."""
        if not self.file:
            return ""
        return f"{self.file}: " if self.line is None else f"{self.file}:{self.line}:{self.column}: "


class ResultsError(Error, OSError):
    """A file or directory of results cannot be read or written, or a run is closed.

    Attributes
    ----------
    path
        The file or directory.

    """

    def __init__(self, message: str, path: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy)
        self.path = path


class InternalError(Error, RuntimeError):
    """A bug in xoff."""
