"""``ampgraph policy``: the policy that the options make, as a file."""

import click

from ampgraph.cli.options import Settings, rewrite_options
from ampgraph.cli.program import Command


@click.command(cls=Command)
@rewrite_options
def policy(settings: Settings) -> None:
    """Print the policy that the options make, as TOML.

    \b
    ampgraph policy --dtype bfloat16 --deny-op Softmax > policy.toml
    ampgraph rewrite model.pb -o model.bf16.pb --policy policy.toml
    """
    click.echo(settings.policy().to_toml(), nl=False)
