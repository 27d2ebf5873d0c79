"""The log, its seal and snapshot, the inbox, and the view that readers get without a lock."""
