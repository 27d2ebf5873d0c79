"""Messages to and from a phone, and the records of the bridge that carries them."""
