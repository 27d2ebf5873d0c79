"""The default store: plain files, the log is the truth.

layout     which file stands where, and that nothing hostile stands there instead
inbox      records from hooks and commands: appended by many, folded by one
log        ops.jsonl: our ordered facts
seal       how far the log goes and its hash, outside the workspace
acceptance the operator takes a changed log for the agent's
snapshot   where the log had got to, so that a start costs the tail and not the history
view       what readers see, without a lock: snapshot, log, and the inbox laid over
ownership  one writer: a lock on this host, a generation between hosts
writer     the only code that changes anything but the inbox
resolutions  resolved.jsonl, made from the log; what other tools wrote into it
recovery   files held against the log: roll forward, adopt, set aside
inspection what is wrong, and the command that mends it
store      the front door
"""

from rekindle.stores.files.store import FileStore

__all__ = ["FileStore"]
