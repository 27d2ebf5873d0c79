"""Build the objects that each command needs. Only this package imports every concrete class."""
