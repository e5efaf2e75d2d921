"""Declares the `ceph equilibrium …` commands to Ceph; the folder commands/ carries them out.

No handler waits for longer than a commit of the monitors, because the commands of a module share
one thread in the mgr. Ceph reads the annotations of the handlers, so they must be objects, not
strings: no `from __future__ import annotations` here.
Every handler has a return annotation, without which Ceph takes its last argument for optional. Ceph
shows the docstrings as help.
"""
from typing import Any, Callable, List, Optional

from .commands.base import ModuleParts
from .commands.drain_commands import add_drains, list_drains, remove_drains
from .commands.plan_commands import (
    dump_plan, execute_plan, list_plans, optimize, remove_all_plans, remove_plans, show_plan)
from .commands.report_commands import (
    evaluate, explain_what, show_df, show_history, show_metrics, show_moves, show_osds,
    show_status, write_page, write_state)
from .commands.switch_commands import add_pools, list_pools, remove_pools, switch_off, switch_on
from .commands.undo_commands import freeze_pgs, take_back
from .compat import keyword_arguments, read_command, write_command
from .plan.model import CANCEL, UNDO
from .report.answer import CommandAnswer, CommandResult, run_command
from .runtime.time_slice import giving_way


class Commands:
    """The handlers, mixed into the module."""

    log: Any
    parts: ModuleParts   # set before Ceph calls a handler

    def _answer(self, output_format: str, command: Callable[..., CommandAnswer],
                *arguments: Any) -> CommandResult:
        with giving_way():
            return run_command(lambda: command(self.parts, *arguments), output_format, self.log)

    @read_command("equilibrium status")
    def _cmd_status(self, format: str = "plain", brief: bool = False) -> CommandResult:
        """Show what equilibrium is doing and why. Option: --brief, in one line"""
        return self._answer(format, show_status, brief)

    @read_command("equilibrium eval")
    def _cmd_eval(self, option: Optional[str] = None, format: str = "plain",
                  fail: Optional[str] = None, worst_failure: bool = False,
                  add: Optional[List[str]] = None, remove: Optional[List[str]] = None,
                  resize: Optional[List[str]] = None,
                  pg_num: Optional[List[str]] = None) -> CommandResult:
        """Evaluate the placement, a plan or a pool (plan/NAME, pool/NAME where both have one), what
        failures (--fail OSD|HOST|BUCKET, --worst-failure) or changes lead to (--add HOST:NxSIZE,
        --remove OSD|HOST|BUCKET, --resize OSD=SIZE, --pg-num POOL=N)"""
        return self._answer(format, evaluate, option, fail, worst_failure,
                            (add, remove, resize, pg_num))

    @read_command("equilibrium df")
    def _cmd_df(self, plan: Optional[str] = None, format: str = "plain",
                sort: Optional[str] = None, limit: Optional[int] = None) -> CommandResult:
        """Show what clients can still write into each pool and into all of them, now and with a
        plan (without its name: the one that is executed). Options:
        --sort used|stored|free|planned|pgs|ops|id|name (--sort=-KEY: descending), --limit N"""
        return self._answer(format, show_df, plan, sort, limit)

    @read_command("equilibrium osds")
    def _cmd_osds(self, what: Optional[List[str]] = None, format: str = "plain",
                  sort: Optional[str] = None, limit: Optional[int] = None) -> CommandResult:
        """Show how full OSDs are, will be and could be, and how many shards move, the fullest
        first: all, or those of OSDs, hosts and device classes. Options:
        --sort use|soon|plan|id|host|pgs|load (--sort=-KEY: descending), --limit N"""
        return self._answer(format, show_osds, what, sort, limit)

    @read_command("equilibrium moves")
    def _cmd_moves(self, what: Optional[str] = None, format: str = "plain",
                   limit: Optional[int] = None, by_osd: bool = False) -> CommandResult:
        """Show the shards that are moving, of all PGs or of an OSD, a host, a pool or a PG, and who
        moves them: plan (equilibrium), steered, recovery, crush, pg_num (Ceph) or upmap (others).
        Options: --limit N; --by-osd (sizes, rate, time left of each OSD)"""
        return self._answer(format, show_moves, what, limit, by_osd)

    @write_command("equilibrium optimize")
    @keyword_arguments
    def _cmd_optimize(self, plan: str, pools: Optional[List[str]] = None,
                      format: str = "plain", max_moves: Optional[int] = None,
                      max_bytes: Optional[str] = None, device_class: Optional[str] = None,
                      aim: Optional[str] = None, from_: Optional[List[str]] = None,
                      to: Optional[List[str]] = None,
                      not_: Optional[List[str]] = None, repair: bool = False,
                      rule: Optional[str] = None, replace: bool = False) -> CommandResult:
        """Make a plan, which is kept; nothing is moved. Pools by name or id. Options:
        --max-moves N, --max-bytes SIZE (500G), --device-class CLASS,
        --aim space|even|least-motion; --from NAMES, --to NAMES, --not NAMES (h1,osd.7); --repair;
        --rule RULE; --replace"""
        return self._answer(format, optimize, plan, replace, pools, max_moves, max_bytes,
                            device_class, aim, (from_, to, not_), repair, rule)

    @read_command("equilibrium show")
    def _cmd_show(self, plan: str, format: str = "plain") -> CommandResult:
        """Show a plan as shell commands that could be run by hand; in JSON also each move with the
        utilization before and after"""
        return self._answer(format, show_plan, plan)

    @read_command("equilibrium dump")
    def _cmd_dump(self, plan: str, format: str = "plain") -> CommandResult:
        """Show the moves of a plan; in JSON also its upmap items, up sets and figures"""
        return self._answer(format, dump_plan, plan)

    @read_command("equilibrium ls")
    def _cmd_ls(self, format: str = "plain") -> CommandResult:
        """List the plans that are kept or in the making, with their state and their aim"""
        return self._answer(format, list_plans)

    @write_command("equilibrium rm")
    def _cmd_rm(self, plan: str, format: str = "plain") -> CommandResult:
        """Forget a plan, cancel one that is being made, or stop one that is executed; moves that
        it has sent go on"""
        return self._answer(format, remove_plans, [plan])

    @write_command("equilibrium reset")
    def _cmd_reset(self, format: str = "plain") -> CommandResult:
        """Forget all plans, those being made too, except one that is being executed"""
        return self._answer(format, remove_all_plans)

    @write_command("equilibrium execute")
    def _cmd_execute(self, plan: str, format: str = "plain") -> CommandResult:
        """Hand a plan over to be carried out, in batches within the misplaced limit"""
        return self._answer(format, execute_plan, plan)

    @write_command("equilibrium freeze")
    def _cmd_freeze(self, dry_run: bool = False, format: str = "plain") -> CommandResult:
        """Pin every remapped PG to where its data is now, as far as upmap items can, so that
        nothing has to move; with --dry-run only show how far that is, and why not further"""
        return self._answer(format, freeze_pgs, dry_run)

    @write_command("equilibrium undo")
    def _cmd_undo(self, plan: Optional[str] = None, since: Optional[str] = None,
                  dry_run: bool = False, format: str = "plain") -> CommandResult:
        """Take back the changes of a plan (without its name: the last plan, or automatic
        balancing), or all changes --since SPAN (such as 6h); first those that have not begun to
        move. With --dry-run only show the cost"""
        return self._answer(format, take_back, UNDO, plan, since, dry_run)

    @write_command("equilibrium cancel")
    def _cmd_cancel(self, plan: Optional[str] = None, dry_run: bool = False,
                    format: str = "plain") -> CommandResult:
        """Stop the execution of a plan, and take back the moves that it has sent and that have not
        begun to copy; no data moves. Without a name: of all plans. With --dry-run only show"""
        return self._answer(format, take_back, CANCEL, plan, None, dry_run)

    @write_command("equilibrium on")
    def _cmd_on(self, format: str = "plain") -> CommandResult:
        """Balance automatically; switches the built-in balancer off where it moves data"""
        return self._answer(format, switch_on)

    @write_command("equilibrium off")
    def _cmd_off(self, format: str = "plain") -> CommandResult:
        """Stop sending moves, those of plans and drains too; final once it answers, for the next
        mgr too. Moves that have been sent go on"""
        return self._answer(format, switch_off)

    @read_command("equilibrium pool ls")
    def _cmd_pool_ls(self, format: str = "plain") -> CommandResult:
        """List the pools that balancing is limited to"""
        return self._answer(format, list_pools)

    @write_command("equilibrium pool add")
    def _cmd_pool_add(self, pools: List[str], format: str = "plain") -> CommandResult:
        """Limit automatic balancing and new plans to these pools, beside those named before; by
        name or id"""
        return self._answer(format, add_pools, pools)

    @write_command("equilibrium pool rm")
    def _cmd_pool_rm(self, pools: List[str], format: str = "plain") -> CommandResult:
        """Take pools off the list that balancing is limited to; by name or id. The last one stays,
        as an empty list means all pools"""
        return self._answer(format, remove_pools, pools)

    @read_command("equilibrium drain ls")
    def _cmd_drain_ls(self, format: str = "plain") -> CommandResult:
        """Show which OSDs are being drained, which shards are left on them and why, and whether
        they are safe to stop"""
        return self._answer(format, list_drains)

    @write_command("equilibrium drain add")
    def _cmd_drain_add(self, osds: List[str], force: bool = False, dry_run: bool = False,
                       format: str = "plain") -> CommandResult:
        """Move all shards off OSDs, whether automatic balancing is on or off; by id (3 or osd.3),
        or by a host or another bucket above them. Shows the forecast; with --dry-run only
        that. Needs --force if the data would not fit"""
        return self._answer(format, add_drains, osds, force, dry_run)

    @write_command("equilibrium drain rm")
    def _cmd_drain_rm(self, osds: List[str], format: str = "plain") -> CommandResult:
        """End the drain of OSDs, which may get shards again; by id, host or bucket"""
        return self._answer(format, remove_drains, osds)

    @read_command("equilibrium explain")
    def _cmd_explain(self, what: Optional[str] = None, osd: Optional[str] = None,
                     format: str = "plain") -> CommandResult:
        """Tell why the cluster, an OSD (3 or osd.3), a host (its fullest OSD), a pool (its name, or
        pool/ID) or a PG (2.1f) is not better off; of a PG and an OSD, why it is not there, check by
        check"""
        return self._answer(format, explain_what, what, osd)

    @read_command("equilibrium history")
    def _cmd_history(self, format: str = "plain", limit: Optional[int] = None) -> CommandResult:
        """Show past moves, when and why, and how much better they made the cluster: the newest
        20 episodes, or --limit N, oldest first"""
        return self._answer(format, show_history, limit)

    @read_command("equilibrium metrics")
    def _cmd_metrics(self, format: str = "plain") -> CommandResult:
        """Print the figures in the text format of Prometheus"""
        return self._answer(format, show_metrics)

    @read_command("equilibrium report")
    def _cmd_report(self, plan: Optional[str] = None, format: str = "plain") -> CommandResult:
        """Write one HTML page about the cluster, or about a plan, for those who decide about it.
        With --format json also the commands that take the plan back without equilibrium, and the
        picture as SVG"""
        return self._answer(format, write_page, plan)

    @read_command("equilibrium dump-state")
    def _cmd_dump_state(self, anonymous: bool = False, format: str = "plain") -> CommandResult:
        """Write the cluster's state as JSON, for bug reports and offline runs; with --anonymous
        without names and addresses"""
        return self._answer(format, write_state, anonymous)
