"""The connection to the engine: client, encryption, schedules, queues."""
