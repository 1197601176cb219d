"""For authors of resource types: a conformance kit that plays a type's whole life without an engine."""

from convergence.testing.conformance import Case, conformance
from convergence.testing.fixture import Fixture, Recovery

__all__ = ['Case', 'Fixture', 'Recovery', 'conformance']
