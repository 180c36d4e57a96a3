"""What all commands share: how errors end a run, and ``--debug``."""

import os
import sys
from typing import IO, Any, NoReturn

import click

INTERRUPTED = 130
BROKEN_PIPE = 141


class Failure(click.ClickException):
    """Ends a run with one message on stderr; the exit code is 1 unless given."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click declares it for classes

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message."""
        click.echo(f"error: {self.format_message()}", file=file, err=True)


class ArgumentError(Failure):
    """An argument that only the loaded graph shows to be wrong: exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 2)


class Command(click.Command):
    """A command with ``--debug``, whose errors are sentences.

    Attributes:
        trouble: Exit code where the model cannot be handled.
    """

    trouble = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, callback=_debug, help="Show tracebacks."))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn every exception but click's own into a message and an exit code."""
        if sys.stdout is None:
            raise Failure("Stdout is closed, so nothing can be printed. To see nothing, send it to /dev/null.", self.trouble)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _give_up_stdout()
            ctx.exit(BROKEN_PIPE)
        except Exception as error:
            if ctx.meta.get("debug"):
                raise
            if isinstance(error, OSError):
                _give_up_stdout()
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        from ampgraph.graph.errors import OpListError, PolicyError

        code = 2 if isinstance(error, PolicyError | OpListError) else self.trouble
        raise Failure(message_of(error), code) from error


class ComparingCommand(Command):
    """A command that exits as diff(1) does: 0 if nothing differs, 1 if something does, 2 where there is trouble."""

    trouble = 2


def message_of(error: Exception) -> str:
    """Return what a user is told about an exception."""
    from ampgraph.graph.errors import AmpgraphError

    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, AmpgraphError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this graph."
    return f"This is a bug in ampgraph: {type(error).__name__}: {error} (--debug shows where)"


class Program(click.Group):
    """The group of all commands, listed in the order in which they were added."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


def _debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value


def _give_up_stdout() -> None:
    """Where stdout cannot take what is buffered, give the interpreter one that it can flush when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
