"""Replaces `zeus` by underwatt.compat.zeus if the folder above is on sys.path (python -m underwatt.compat.zeus)."""

from underwatt.compat.zeus._names import own_the_name

own_the_name()
