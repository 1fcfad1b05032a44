"""The base class of all exceptions."""

from __future__ import annotations


class ZeusBaseError(Exception):
    """An error of the Zeus interface; message is its text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message
