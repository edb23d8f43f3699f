"""The command line: `kubelet-mp [flags]` is the agent, `kubelet-mp check|pods|why|logs …` what a person types."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = ("check", "pods", "why", "logs")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 after a clean stop, 1 when starting or a command failed."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in COMMANDS:
        command = importlib.import_module(f"kubelet_mp.cli.{arguments[0]}")
        return int(command.run(arguments[1:]))
    return agent(arguments)


def agent(arguments: Sequence[str]) -> int:
    from kubelet_mp import log
    from kubelet_mp.config.load import Shown, load
    from kubelet_mp.errors import BootError
    from kubelet_mp.supervisor.startup import serve

    try:
        settings = load(arguments)
    except Shown as shown:
        print(shown.text)
        return 0
    except BootError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    logging = settings.kubelet.logging
    patterns = {item.file_pattern: item.verbosity for item in logging.vmodule}
    log.setup(logging.format, logging.verbosity, vmodule=patterns)
    log.get("supervisor").v(2).info("effective configuration", config=settings.loggable())
    for warning in settings.warnings:
        log.get("supervisor").warning(warning)
    try:
        return serve(settings, lambda: load(arguments))
    except BootError as error:
        log.get("supervisor").error("command failed", err=str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
