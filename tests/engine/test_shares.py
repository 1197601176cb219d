"""Workers are told for which project there is something to do."""

from convergence.rpc.shares import beneficiary
from tests.harness import Harness, Messages, things


def test_what_an_engine_tells_workers_is_for_the_project_of_the_stack_and_so_is_what_follows():
    harness, told = Harness(None), []

    class Telling(Messages):
        def check_resource(self, traversal_id, node, hops=0):
            told.append(beneficiary())
            return super().check_resource(traversal_id, node, hops)

    harness.messages.__class__ = Telling
    harness.create(things(list('ab')))
    assert told == ['p', 'p']
    assert beneficiary() == ''
