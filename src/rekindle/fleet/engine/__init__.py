"""Connection to the engine: client, encryption, schedules, queues."""
