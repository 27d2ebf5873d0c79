"""The default store: plain files, with the log as the source of truth.

`file_store` is the entry point. The writer (`log_writer`, `document_writer`, `writer`) is the only
code that changes anything but the inbox.
"""

from rekindle.stores.files.file_store import FileStore

__all__ = ["FileStore"]
