"""All that is asked of observations, in one: `convergence.db.ports.ObservationsPort` on a database."""

from __future__ import annotations

from convergence.db.repositories.observations.enrolment import EnrolmentRows
from convergence.db.repositories.observations.known import KnownObjects
from convergence.db.repositories.observations.looks import LookRows
from convergence.db.repositories.observations.repairs import RepairRows


class Observations(EnrolmentRows, LookRows, KnownObjects, RepairRows):
    """Enrols the objects that are to be looked at, hands them out, keeps what was seen, and tells what to put right."""
