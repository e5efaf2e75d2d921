"""The sessions of the tests of commands."""
from tests.commands.conftest import open_session
from tests.support.remembered_plans import plans_are_made_once

__all__ = ["open_session", "plans_are_made_once"]
