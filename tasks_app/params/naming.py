"""Names of output files. Every job takes a new serial number, also when it tries inputs again; gaps are normal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tasks_app.params.placeholders import BadTemplate, serial_width

_PART = re.compile(r"\$\{([^{}]*)\}|\$(JEDITASKID|JOBSETID|PANDAID)\b|%")


class BadNameTemplate(BadTemplate):
    """A file-name template asks for what no name can be made of; the message says for what."""


class NameTemplate:
    """A file-name template of one task, ready to make names.

    `${SN}` and `${SN/P}` become the serial number, padded to six digits; `${SN:04d}` has its own width.
    `$JEDITASKID` and `$JOBSETID` become the numbers given here; `$PANDAID` and `${MIDDLENAME}` differ from job to job.
    """

    __slots__ = ("_format", "_parts")

    def __init__(self, template: str, *, task_id: int, jobset_id: int | None = None) -> None:
        """Raises BadNameTemplate for a width that is none, and for placeholders that have no place in names."""
        self._parts: list[str] = []
        fixed = {"JEDITASKID": task_id, "JOBSETID": task_id if jobset_id is None else jobset_id}
        self._format = _PART.sub(lambda match: self._part(match, fixed), template)

    def _part(self, match: re.Match[str], fixed: dict[str, int]) -> str:
        if match[0] == "%":
            return "%%"
        name = match[2] if match[1] is None else match[1]
        if name in fixed:
            return str(fixed[name])
        if name == "MIDDLENAME":
            self._parts.append("middle")
            return "%s"
        if name == "PANDAID":
            self._parts.append("job")
            return "%d"
        start, colon, wanted = name.partition(":")
        if start != "SN" and name != "SN/P":
            raise BadNameTemplate(f"{match[0]} cannot be used in a file name; ${{SN}} and ${{MIDDLENAME}} can.")
        self._parts.append("serial")
        digits = serial_width(wanted) if colon else 6
        if digits is None:
            raise BadNameTemplate(f"{wanted!r} in {match[0]} is not a width such as 06d.")
        return f"%0{digits}d" if digits else "%d"

    @property
    def needs_job_id(self) -> bool:
        return "job" in self._parts

    def name(self, serial: int, *, job_id: int | None = None, middle: str = "") -> str:
        """The name of one file. Raises ValueError when the template needs a job id and none is given."""
        if job_id is None and self.needs_job_id:
            raise ValueError("This file name contains the job number, so the job must have a number first.")
        values = {"serial": serial, "job": job_id, "middle": middle}
        return self._format % tuple(values[part] for part in self._parts)

    def names(
        self, serials: Iterable[int], job_ids: Sequence[int] | None = None, middles: Sequence[str] = ()
    ) -> list[str]:
        """Names of many files, one a serial number; `job_ids` and `middles` in the same order when the template needs them."""
        if self._parts == ["serial"]:
            form = self._format
            return [form % serial for serial in serials]
        if job_ids is None:
            return [self.name(serial) for serial in serials]
        if not middles:
            return [self.name(serial, job_id=job_id) for serial, job_id in zip(serials, job_ids, strict=True)]
        rows = zip(serials, job_ids, middles, strict=True)
        return [self.name(serial, job_id=job_id, middle=middle) for serial, job_id, middle in rows]


_FIELDS = re.compile(r"\.|_tid\d+")


def middle_name(source: str, fields: Sequence[int]) -> str:
    """`.` and the chosen fields (counted from 1) of a dataset or file name, for `${MIDDLENAME}`; "" without fields.

    Fields lie between dots and `_tid` numbers. Fields that the name does not have are left out.
    """
    pieces = _FIELDS.split(source.rpartition(":")[2].rstrip("/"))
    chosen = [pieces[number - 1] for number in fields if 0 < number <= len(pieces) and pieces[number - 1]]
    return "".join(f".{piece}" for piece in chosen)
