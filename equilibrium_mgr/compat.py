"""Differences between Ceph releases in how a module registers its commands.

Ceph 20 replaced the global `CLICommand` registry by one registry type per module. Which of the two
is there is found by importing, never by a version number.
"""
from __future__ import annotations

import mgr_module

if hasattr(mgr_module, "CLICommandBase"):
    Registry = mgr_module.CLICommandBase.make_registry_subtype("EquilibriumCLICommand")
    ReadCommand = Registry.Read
    WriteCommand = Registry
else:
    Registry = mgr_module.CLICommand
    ReadCommand = mgr_module.CLIReadCommand
    WriteCommand = mgr_module.CLICommand
