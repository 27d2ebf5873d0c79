"""All exceptions that Rekindle raises on purpose.

The exception tree, with the exit code that a command returns for each:

    RekindleError                     1
    ├── UsageError                    2
    │   ├── AnswerError               2
    │   └── DefinitionError           2
    ├── ManifestError                 3
    │   ├── ContractError             3
    │   ├── ManifestMissingError      3
    │   ├── NotifyError               3
    │   │   └── NotifyVariableError   3
    │   ├── UnacceptedError           3
    │   └── UnenforceableError        3
    ├── DocumentError                 4
    │   ├── ForgedCommandError        4
    │   ├── LogMissingError           4
    │   ├── NewerSchemaError          4
    │   └── TamperedLogError          4
    ├── StoreError                    5
    │   ├── AuditError                5
    │   ├── OversizedError            5
    │   ├── StopUnrecordedError       13
    │   ├── UnsafePathError           5
    │   └── WorkspaceError            5
    ├── OwnershipError                6
    │   ├── BusyError                 6
    │   │   └── ConfinedError         6
    │   ├── FencedError               6
    │   ├── FolderLostError           12
    │   ├── ForeignOwnerError         6
    │   │   └── OnFleetError          6
    │   ├── StalePushError            6
    │   └── SupervisedError           6
    ├── NotFoundError                 7
    │   ├── ClosedQuestionError       7
    │   ├── NotOnFleetError           7
    │   ├── UnknownAgentError         7
    │   ├── UnknownPipelineError      7
    │   └── UnknownQuestionError      7
    ├── CheckFailedError              8
    │   └── MergeConflictError        8
    ├── AgentError                    9
    │   ├── CredentialsError          9
    │   ├── PluginError               9
    │   ├── ProgramMissingError       9
    │   ├── SandboxError              9
    │   ├── StoppedError              9
    │   ├── SummaryError              9
    │   │   └── OverBudgetError       9
    │   └── UnfinishedError           9
    ├── CollectorError                16
    ├── PhoneError                    17
    ├── EngineError                   10
    │   ├── CodecKeyError             10
    │   └── PlainTextError            10
    ├── UntrustedError                11
    ├── CalledByAgentError            14
    └── WaitTimeoutError              15

An error states what happened (`str(error)`), carries its data as attributes, and tells the user
what to do next (`error.hint`).
"""

from rekindle.errors.files import (
    AuditError,
    ContractError,
    DocumentError,
    ForgedCommandError,
    LogMissingError,
    ManifestError,
    ManifestMissingError,
    NewerSchemaError,
    NotifyError,
    NotifyVariableError,
    OversizedError,
    StopUnrecordedError,
    StoreError,
    TamperedLogError,
    UnacceptedError,
    UnenforceableError,
    UnsafePathError,
    UntrustedError,
    WorkspaceError,
    translate_os_errors,
)
from rekindle.errors.owners import (
    BusyError,
    ConfinedError,
    FencedError,
    FolderLostError,
    ForeignOwnerError,
    OnFleetError,
    OwnershipError,
    StalePushError,
    SupervisedError,
)
from rekindle.errors.requests import (
    AnswerError,
    CalledByAgentError,
    CheckFailedError,
    ClosedQuestionError,
    DefinitionError,
    MergeConflictError,
    NotFoundError,
    NotOnFleetError,
    UnknownAgentError,
    UnknownPipelineError,
    UnknownQuestionError,
    UsageError,
)
from rekindle.errors.root import (
    RekindleError,
)
from rekindle.errors.runs import (
    AgentError,
    CodecKeyError,
    CollectorError,
    CredentialsError,
    EngineError,
    OverBudgetError,
    PhoneError,
    PlainTextError,
    PluginError,
    ProgramMissingError,
    SandboxError,
    StoppedError,
    SummaryError,
    UnfinishedError,
    WaitTimeoutError,
)

__all__ = [
    "AgentError",
    "AnswerError",
    "AuditError",
    "BusyError",
    "CalledByAgentError",
    "CheckFailedError",
    "ClosedQuestionError",
    "CodecKeyError",
    "CollectorError",
    "ConfinedError",
    "ContractError",
    "CredentialsError",
    "DefinitionError",
    "DocumentError",
    "EngineError",
    "FencedError",
    "FolderLostError",
    "ForeignOwnerError",
    "ForgedCommandError",
    "LogMissingError",
    "ManifestError",
    "ManifestMissingError",
    "MergeConflictError",
    "NewerSchemaError",
    "NotFoundError",
    "NotOnFleetError",
    "NotifyError",
    "NotifyVariableError",
    "OnFleetError",
    "OverBudgetError",
    "OversizedError",
    "OwnershipError",
    "PhoneError",
    "PlainTextError",
    "PluginError",
    "ProgramMissingError",
    "RekindleError",
    "SandboxError",
    "StalePushError",
    "StopUnrecordedError",
    "StoppedError",
    "StoreError",
    "SummaryError",
    "SupervisedError",
    "TamperedLogError",
    "UnacceptedError",
    "UnenforceableError",
    "UnfinishedError",
    "UnknownAgentError",
    "UnknownPipelineError",
    "UnknownQuestionError",
    "UnsafePathError",
    "UntrustedError",
    "UsageError",
    "WaitTimeoutError",
    "WorkspaceError",
    "translate_os_errors",
]
