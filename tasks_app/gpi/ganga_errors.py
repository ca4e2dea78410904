"""What goes wrong in Ganga's interface, under the names that scripts catch."""

from __future__ import annotations


class GangaException(Exception):
    """All errors of this interface."""


class JobError(GangaException):
    """The state of the job does not allow this, or its submission failed."""


class SiteUnavailable(JobError):
    """The site did not answer; what was begun is carried on when it does."""


class SplitterError(JobError):
    """The splitter does not fit the job, or makes no subjobs. Nothing has happened."""


class GangaAttributeError(GangaException, AttributeError):
    """The object has no such attribute."""


class GangaTypeError(GangaException, TypeError):
    """A value of another type than the attribute takes."""


class RegistryKeyError(GangaException, KeyError):
    """There is no such job."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotSupported(GangaException, NotImplementedError):
    """Ganga has this, and it is not built here; the sentence says what to do instead."""
