"""The system calls that a container refuses, because agents do not need them.

They load code into the kernel, change mounts or clocks, open other namespaces, or read the kernel's
key rings. All other calls are allowed, so that compilers, debuggers and browsers work.
"""

from typing import Any

_REFUSED = (
    *("mount", "umount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount"),
    *("fspick", "mount_setattr", "pivot_root", "chroot", "setns", "unshare"),
    *("bpf", "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load"),
    *("init_module", "finit_module", "delete_module", "create_module"),
    *("keyctl", "add_key", "request_key"),
    *("process_vm_readv", "process_vm_writev", "kcmp", "open_by_handle_at"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("settimeofday", "clock_settime", "clock_settime64", "clock_adjtime", "adjtimex", "stime"),
    *("acct", "quotactl", "swapon", "swapoff", "reboot", "syslog", "vhangup", "iopl", "ioperm"),
    *("sethostname", "setdomainname", "lookup_dcookie", "nfsservctl", "uselib", "vm86", "vm86old"),
)
_NAMESPACES = 0x7E020000
"""The flags of `clone` that create namespaces."""
_NOT_PERMITTED, _NOT_IMPLEMENTED = 1, 38
"""Error codes of the kernel."""


def render_filter() -> dict[str, Any]:
    """Return the `seccomp` section of a container's configuration."""
    clone = {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NOT_PERMITTED}
    # For each flag, refuse the call if the flag is set.
    flags = [1 << bit for bit in range(_NAMESPACES.bit_length()) if _NAMESPACES & 1 << bit]
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            {"names": list(_REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _NOT_PERMITTED},
            *(
                {
                    **clone,
                    "args": [
                        {"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}
                    ],
                }
                for flag in flags
            ),
            # A filter cannot read the flags of `clone3`. Libraries then use `clone` instead.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NOT_IMPLEMENTED},
        ],
    }
