"""Version of the package, where AMUSE looks for it when it lists the codes that a script used."""

from allpairs import __version__ as version

__all__ = ["version"]
