"""`passhat completion`: complete commands and options in a shell."""

from __future__ import annotations

import click

SHELLS = {
    "bash": "~/.local/share/bash-completion/completions/passhat",
    "zsh": "a folder of your fpath, as _passhat",
    "fish": "~/.config/fish/completions/passhat.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes passhat's commands and options in your shell.

    \b
      passhat completion bash > ~/.local/share/bash-completion/completions/passhat
      passhat completion zsh > "${fpath[1]}/_passhat"
      passhat completion fish > ~/.config/fish/completions/passhat.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "the argument allows only shells that click knows"
    root = context.find_root()
    script = kind(root.command, {}, "passhat", "_PASSHAT_COMPLETE")
    click.echo(script.source())
    click.echo(f"write this to {SHELLS[shell]}, then open a new shell", err=True)
