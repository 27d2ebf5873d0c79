"""Run the bridge until a signal ends it."""

from collections.abc import Callable

from rekindle.api.operator import Operator
from rekindle.api.trusted_homes import TrustedHomes
from rekindle.errors import UsageError
from rekindle.phone.bridge import Bridge
from rekindle.phone.bridge_projects import BridgeProjects
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.system.processes.child_processes import Interruption
from rekindle.thresholds.phone_limits import PHONE_CHECK_SECONDS
from rekindle.wiring.starting.background_start import sleep_until_signal


def run_bridge(tell: Callable[[str], None]) -> None:
    """Carry messages between all trusted projects and the paired chats.

    Raises:
        UsageError: No service is set up, or another bridge is running.
    """
    files = PhoneFiles()
    if not files.read_settings().channels:
        raise UsageError("no phone is set up", hint="run `rekindle phone setup`")
    with files.hold_bridge() as is_held, Interruption() as interruption:
        if not is_held:
            raise UsageError(
                "a bridge is already running", hint="`rekindle phone status` shows its state"
            )
        homes = TrustedHomes(operator=Operator(tell=tell, origin="phone"))
        tell("the bridge is running")
        bridge = Bridge(files, BridgeProjects(homes), tell)
        while not interruption.count:
            bridge.work()
            sleep_until_signal(PHONE_CHECK_SECONDS, interruption)
        bridge.end()
