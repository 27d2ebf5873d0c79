"""The default store: plain files, with the log as the source of truth.

`file_store` is the entry point. Only the writer (`log_writer`, `document_writer`, `writer`) changes
files other than the inbox.
"""

from rekindle.stores.files.file_store import FileStore

__all__ = ["FileStore"]
