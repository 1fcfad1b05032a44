"""The class of all exceptions."""

from __future__ import annotations


class ZeusBaseError(Exception):
    """Something that Zeus' interface says; message is its text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message
