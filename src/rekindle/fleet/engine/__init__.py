"""Connection to the engine: client, encryption, schedules and queues."""
