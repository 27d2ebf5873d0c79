"""The composition root: the only package that imports every concrete class."""
