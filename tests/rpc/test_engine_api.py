"""One class declares what an engine can be asked; the parts of the engine, the messages and the client follow it."""

import inspect
import pkgutil
from importlib import import_module

import pytest

import convergence.engine
from convergence.engine.service import EngineService
from convergence.errors import ConfigurationError
from convergence.rpc.client import EngineClient
from convergence.rpc.engine_api import EngineApi
from convergence.rpc.operations import OPERATIONS


def parts():
    """Every method of the engine that carries out an operation, by the operation's name."""
    found = {}
    for module in pkgutil.walk_packages(convergence.engine.__path__, 'convergence.engine.'):
        loaded = import_module(module.name)
        for _, part in inspect.getmembers(loaded, inspect.isclass):
            if part.__module__ != loaded.__name__:
                continue
            for name in OPERATIONS.keys() & vars(part).keys():
                found.setdefault(name, []).append(vars(part)[name])
    return found


PARTS = parts()


@pytest.mark.parametrize('name', OPERATIONS)
def test_one_part_of_the_engine_carries_it_out_with_the_same_arguments(name):
    (method,) = PARTS[name]
    has = list(inspect.signature(method).parameters.values())[2:]
    takes_more = any(each.kind is each.VAR_KEYWORD for each in has)
    declared = list(inspect.signature(getattr(EngineApi, name)).parameters.values())[2:]
    named = {each.name: each for each in has if each.kind is not each.VAR_KEYWORD}
    for each in declared:
        assert each.name in named or takes_more, f'{method.__qualname__} does not take {each.name}'
        if each.name in named and each.default is not each.empty:
            assert named[each.name].default is not each.empty, f'{each.name} may be left out, and is required there'
    assert set(named) <= {each.name for each in declared}


def test_an_engine_that_lacks_an_operation_or_has_it_twice_does_not_start():
    class Whole:
        """A part with every operation."""

    for name in OPERATIONS:
        setattr(Whole, name, lambda self, context: None)
    beside = (None, None, None)
    assert EngineService([Whole()], *beside).create_stack('who') is None
    with pytest.raises(ConfigurationError, match='create_stack is offered twice'):
        EngineService([Whole(), type('Part', (), {'create_stack': None})()], *beside)
    del Whole.create_stack
    with pytest.raises(ConfigurationError, match='no part of the engine offers create_stack'):
        EngineService([Whole()], *beside)


def test_every_operation_is_described():
    assert len(OPERATIONS) > 40
    assert [name for name, operation in OPERATIONS.items() if not operation.about.endswith('.')] == []


def test_a_client_asks_by_the_name_of_the_method_with_arguments_by_place_or_name():
    asked = []

    class Recorder(EngineApi):
        def call(self, context, name, /, **arguments):
            asked.append((context, name, arguments))
            return {'stack_id': '1'}

    api = Recorder()
    assert api.create_stack('who', 'web', {'a': 1}, files={'f': 'x'}) == {'stack_id': '1'}
    assert asked == [('who', 'create_stack', {'stack_name': 'web', 'template': {'a': 1}, 'files': {'f': 'x'}})]
    with pytest.raises(TypeError):
        api.create_stack('who')
    with pytest.raises(TypeError):
        api.create_stack('who', 'web', {}, colour='red')


def test_the_client_has_every_method():
    assert [name for name in OPERATIONS if not callable(getattr(EngineClient, name, None))] == []
