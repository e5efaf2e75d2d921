"""The mgr module: its parts, the serve loop, and the methods that Ceph calls."""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional

from mgr_module import MgrModule, Option

from .cli import Commands
from .commands.base import ModuleParts
from .commands.report_commands import show_metrics
from .compat import Registry
from .control.balancer import Balancer
from .control.balancing_scope import bad_options
from .gateway.gateway import Gateway, StrictGateway
from .metrics_endpoint.endpoint import MetricsEndpoint
from .settings import OPTIONS, BadOption, OptionValues, Settings, read_settings
from .plan.store import PlanStore
from .plan_service.plan_service import PlanService
from .report.explain.advice import state_action
from .report.health import STALE_SECONDS, HealthMonitor, health_checks
from .report.history import ProgressEvents
from .runtime.waiting import Backoff
from .runtime.job_thread import JobRunner, JobThread
from .runtime.time_slice import giving_way

_FIRST_BACKOFF_SECONDS = 15.0
_LONGEST_BACKOFF_SECONDS = 600.0


class Module(Commands, MgrModule):
    """The class that ceph-mgr instantiates. Only the simulated mgr passes `clock` and `jobs`."""

    CLICommand = Registry
    MODULE_OPTIONS = [Option(**option) for option in OPTIONS]
    NOTIFY_TYPES: List[Any] = []

    def __init__(self, *args: Any, clock: Callable[[], float] = time.time,
                 jobs: Optional[JobRunner] = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.clock = clock
        self.wakeup = threading.Event()
        self.jobs: JobRunner = jobs if jobs is not None else JobThread(self.log)
        self.gateway = Gateway(self, clock, self.settings)
        self.options = OptionValues(
            self.get_module_option, self.get_localized_module_option, str(self.get_mgr_id()),
            lambda: self.gateway.options_set(self.module_name))
        self.plan_store = PlanStore(self)
        self.plan_service = PlanService(self.gateway, self.plan_store, self.jobs, clock, self.log)
        self.balancer = Balancer(self.gateway, self.plan_store, self.plan_service, self,
                                 self.settings, clock, self.wakeup.set, self.log)
        self.last_round_at: Optional[float] = None
        self.parts = ModuleParts(
            self.balancer, self.gateway, self.plan_service, self.plan_store, self.options,
            self.settings, clock, lambda: self.last_round_at,
            self.wakeup.set, lambda: self._health)
        self._metrics = MetricsEndpoint(
            lambda: show_metrics(self.parts).plain + "\n", self.set_uri,
            lambda: str(self.get_mgr_ip()), self.log)
        self._stopping = False
        self._backoff = Backoff(_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS)
        self._failure = ""
        self._health: Optional[Dict[str, Any]] = None
        self._progress = ProgressEvents(self.gateway.update_progress, self.gateway.end_progress)
        self._monitor = HealthMonitor()

    def settings(self) -> Settings:
        """Returns the options in effect."""
        return read_settings(self.options.value)

    def config_notify(self) -> None:
        """Starts the next round at once. Ceph calls it if an option has changed."""
        self.options.is_check_due = True
        self.wakeup.set()

    def serve(self) -> None:
        """Runs the loop of the serve thread; returns only at shutdown."""
        with giving_way():
            while not self._stopping:
                self.wakeup.wait(self.step())
                self.wakeup.clear()

    def step(self) -> float:
        """Runs a round. Never raises; returns the seconds until the next one is due."""
        try:
            self.balancer.changes()   # first: commands and jobs need what the last mgr has left
            self.options.check_if_due()
            self._serve_metrics()
            delay = self.balancer.round()
            self._backoff.succeeded()
            self._failure, self.last_round_at = "", self.clock()
        except Exception as error:
            self.log.exception("a round of equilibrium failed")
            self._failure = f"{type(error).__name__}: {error}"
            delay = self._backoff.failed(self.clock())
        self._report_health()
        self._report_progress()
        return delay

    def shutdown(self) -> None:
        """Ends the serve loop, a running plan job and the metrics endpoint."""
        self._stopping = True
        self.plan_service.stop()
        self.wakeup.set()
        self.jobs.stop()
        self._metrics.stop()

    @giving_way()
    def self_test(self) -> str:
        """Reads all answers of the mgr, and returns a line on them; moves and stores nothing.

        Ceph's selftest module calls it, and prints the RuntimeError that it raises for a fault.
        """
        known = {prefix.replace("-", "_").replace(" ", "_") for prefix in Registry.COMMANDS}
        handlers = [name for name in dir(self) if name.startswith("_cmd_")]
        wrong = [f"no command leads to {name}" for name in handlers
                 if name.replace("_cmd_", "equilibrium_", 1) not in known]
        wrong += [option.sentence() for option in self.settings().replaced]
        if wrong:
            raise RuntimeError("; ".join(wrong))
        return StrictGateway(self, self.clock, self.settings).read_everything()

    def _serve_metrics(self) -> None:
        """Serves metrics by the options. If that fails, the round goes on."""
        try:
            settings = self.settings()
            self._metrics.apply(settings.metrics_addr, settings.metrics_port)
        except Exception:
            self.log.exception("the endpoint of the metrics cannot be changed")

    def _unserved_metrics(self, settings: Settings) -> List[BadOption]:
        """Returns the option of the metrics' port if they cannot be served there."""
        failure = self._metrics.failure
        if failure is None:
            return []
        return [BadOption(
            "metrics_port", str(settings.metrics_port), f"no metrics are served: {failure}")]

    def _report_health(self) -> None:
        """Sets the health checks if they have changed."""
        try:
            settings = self.settings()
            status = self.balancer.status
            now = self.clock()
            self._monitor.observe(status, now)
            view = status.view
            options = bad_options(settings, view.snapshot if view is not None else None)
            options += self._unserved_metrics(settings)
            failure = self._failure or self.plan_service.last_failure("") or ""
            action = state_action(status, view, settings, now)
            checks = self._monitor.update(health_checks(
                status, now, settings.active, failure, options,
                self.gateway.silent_osds(STALE_SECONDS), self._monitor.stuck_since, action))
            if checks != self._health:
                self.set_health_checks(checks)
                self._health = checks
        except Exception:
            self.log.exception("health checks of equilibrium cannot be reported")

    def _report_progress(self) -> None:
        """Begins, changes or ends the events of Ceph's progress module."""
        try:
            self._progress.report(self.balancer.status, self._failure)
        except Exception:
            self.log.exception("the progress of equilibrium cannot be reported")
