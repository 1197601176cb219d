"""Sizes, names and docstrings: what keeps a file readable in one sitting."""

import ast
import re

import pytest

from tests.architecture.source import Source, public, sources

FILE_LINES = 400
FUNCTION_LINES = 50
PARAMETERS = 7
METHODS = 15
LINE_LENGTH = 120
FORBIDDEN_NAMES = {'utils', 'util', 'helpers', 'helper', 'common', 'manager', 'misc'}
# A limit is an alarm, not a goal: what belongs together is not torn apart to get under a number. Who is over one answers
# here, by the rule and the place that it names, with why it reads better in one piece.
ANSWERED: dict[tuple[str, str], str] = {
    ('large_classes', 'convergence/rpc/engine_api.py EngineApi'): 'every operation, declared in one place',
    ('long_files', 'convergence/rpc/engine_api.py'): 'every operation, declared in one place',
    ('wide_functions', 'convergence/rpc/engine_api.py'): 'what the field has in the body of a deployment',
    (
        'wide_functions',
        'convergence/engine/operations/stacks.py create_stack',
    ): 'the arguments of the field, each by its name, and the credentials that come with them',
    (
        'wide_functions',
        'convergence/engine/operations/stacks.py update_stack',
    ): 'the arguments of the field, each by its name, and the credentials that come with them',
    (
        'wide_functions',
        'convergence/engine/preview/preview.py preview_stack',
    ): 'the arguments of the field, each by its name, and the credentials that come with them',
    (
        'wide_functions',
        'convergence/engine/reads/installation.py validate_template',
    ): 'the arguments of the field, each by its name, and the credentials that come with them',
    (
        'large_classes',
        'simulator/convergence_simulator/crew/crew.py Crew',
    ): 'it is messenger and processes at once, as its threads see it',
    (
        'large_classes',
        'simulator/convergence_simulator/runs/run.py Run',
    ): 'one method for each thing that can happen next',
    (
        'large_classes',
        'simulator/convergence_simulator/cloud/things.py Thing',
    ): 'the contract of resource types, method by method',
    (
        'large_classes',
        'simulator/convergence_simulator/rules/transition.py Memory',
    ): 'one reader for each kind of effect',
    ('large_classes', 'simulator/convergence_simulator/runs/user.py User'): 'one method for each kind of request',
    ('long_files', 'convergence/db/schema/models.py'): 'every table, declared in one place',
    ('wide_functions', 'convergence/cli/stack/drift.py drift'): 'the options of a command, each by its name',
    ('long_files', 'convergence/core/model.py'): 'the nouns, each with its meaning, in one place',
    ('long_files', 'convergence/testing/conformance.py'): 'one function for each thing that is tried out',
    (
        'large_classes',
        'simulator/convergence_simulator/memory/observations.py MemoryObservations',
    ): 'one method for each question about objects',
    ('large_classes', 'convergence/resources/nested.py NestedType'): 'the contract of resource types, method by method',
    (
        'large_classes',
        'convergence/resources/builtin/software/deployments.py Deployed',
    ): 'the contract of resource types, method by method',
    ('large_classes', 'convergence/testing/life.py Life'): 'a user, a worker and a store of one row, a few lines each',
    ('large_classes', 'convergence/api/serving/connection.py Connection'): 'one state machine, each phase a few lines',
    (
        'large_classes',
        'convergence/worker/scheduler/thread_groups.py ThreadGroups',
    ): 'threads, queue and groups change under one lock',
    (
        'large_classes',
        'convergence/engine/sweeper/tasks.py SweepTasks',
    ): 'one method for each thing that may have been left undone',
    ('vague_results', 'simulator/convergence_simulator/memory/draft.py Draft.get'): 'a row of whichever table is named',
    ('vague_results', 'simulator/convergence_simulator/memory/look.py Look.lock'): 'a row of whichever table is named',
    ('vague_results', 'convergence/resources/manifest.py ManifestType.call_loaded'): 'what the method answers',
    (
        'vague_results',
        'simulator/convergence_simulator/stores/sqlstore.py CatchingUp.execute',
    ): 'a result of SQLAlchemy, or `Shown`',
    (
        'vague_results',
        'simulator/convergence_simulator/stores/sqlstore.py Shown.first',
    ): 'whatever row the statement asks for',
    ('long_files', 'convergence/core/rows.py'): 'one value for each kind of row, with the meaning of every column',
    ('large_classes', 'convergence/engine/traversals/traversals.py Traversals'): 'whatever begins or ends a traversal',
    (
        'large_classes',
        'simulator/convergence_simulator/memory/queries.py MemorySweeps',
    ): 'one method for each question of a sweeper',
    ('large_classes', 'convergence/db/ports.py SweepsPort'): 'one method for each question of a sweeper',
    ('large_classes', 'convergence/db/repositories/sweeps.py Sweeps'): 'one method for each question of a sweeper',
    ('wide_functions', 'convergence/template/compiler.py analyse'): 'what is known of a template, each by its name',
    ('wide_functions', 'convergence/worker/wiring.py wire_worker'): 'the parts that a worker is made from',
    ('wide_functions', 'convergence/engine/sweeper/tasks.py __init__'): 'whatever may have been left undone is here',
    (
        'wide_functions',
        'simulator/convergence_simulator/scenarios/templates.py __init__',
    ): 'whatever a scenario may say of a resource',
    ('long_functions', 'convergence/worker/wiring.py wire_worker'): 'wires the parts of a worker, one line each',
}
# Split, so that this file does not find itself.
UNFINISHED = re.compile(rf'\b(?:{"TO"}DO|{"FIX"}ME|{"XX"}X)\b')

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_migration(source: Source) -> bool:
    """Migrations are written once, straight down, and never read again."""
    return source.module.startswith('migrations.versions.')


def functions(source: Source):
    """Every function of a file, with whether it is a method that is handed self or cls."""
    for node in source.nodes:
        if not isinstance(node, (ast.Module, ast.ClassDef, *FUNCTION)):
            continue
        for child in node.body:
            if isinstance(child, FUNCTION):
                yield child, isinstance(node, ast.ClassDef) and not is_static(child)


def is_static(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method gets no self."""
    return any(isinstance(item, ast.Name) and item.id == 'staticmethod' for item in function.decorator_list)


def long_files(source):
    """The file, if it is too long."""
    lines = source.text.count('\n')
    if lines > FILE_LINES:
        yield f'{source.name}: {lines} lines'


def long_functions(source):
    """Functions that are too long."""
    for node in source.nodes:
        if isinstance(node, FUNCTION) and (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
            yield f'{source.name}:{node.lineno} {node.name}: {lines} lines'


def wide_functions(source):
    """Functions that want too much to be told."""
    for node, is_method in functions(source):
        arguments = node.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) - is_method
        if count > PARAMETERS:
            yield f'{source.name}:{node.lineno} {node.name}: {count} parameters'


def large_classes(source):
    """Classes with too many methods."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            count = sum(isinstance(child, FUNCTION) for child in node.body)
            if count > METHODS:
                yield f'{source.name}:{node.lineno} {node.name}: {count} methods'


def long_lines(source):
    """Lines that do not fit."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > LINE_LENGTH:
            yield f'{source.name}:{number} has {len(line)} characters'


def forbidden_names(source):
    """Modules and packages named after nothing."""
    if FORBIDDEN_NAMES.intersection(source.module.split('.')):
        yield source.name


def vague_results(source):
    """Public functions that say nothing of what they return. Where a value is only handed on it has a name, as `AnyJson`."""
    for name, node in public(source.tree):
        if not isinstance(node, FUNCTION) or any(ast.unparse(each) == 'override' for each in node.decorator_list):
            continue
        if isinstance(node.returns, ast.Name) and node.returns.id == 'Any':
            yield f'{source.name}:{node.lineno} {name}'


def unfinished(source):
    """Notes that say the work is not done."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield f'{source.name}:{number} {line.strip()}'


def undocumented(source):
    """Modules, and public classes, functions and methods, without a docstring."""
    if source.text.strip() and not ast.get_docstring(source.tree):
        yield source.name
    for name, node in public(source.tree):
        is_overload = any('overload' in ast.unparse(item) for item in getattr(node, 'decorator_list', ()))
        if not is_overload and not ast.get_docstring(node):
            yield f'{source.name}:{node.lineno} {name}'


RULES = (
    long_files,
    long_functions,
    wide_functions,
    large_classes,
    long_lines,
    forbidden_names,
    vague_results,
    unfinished,
    undocumented,
)
EXEMPT_MIGRATIONS = (long_files, long_functions, undocumented, vague_results)


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: rule.__name__)
def test_limits(rule):
    checked = [source for source in sources() if not (rule in EXEMPT_MIGRATIONS and is_migration(source))]
    assert len(checked) > 5
    found = [line for source in checked for line in rule(source)]
    unanswered = [line for line in found if not is_answered(rule, line)]
    assert unanswered == [], f'{rule.__doc__}\n' + '\n'.join(unanswered)


def fits(line, place):
    """Whether an alarm is about a place, at whatever line that stands today."""
    return re.sub(r':\d+', '', line).startswith(place)


def is_answered(rule, line):
    """Whether somebody has said why a place may be over a limit."""
    return any(name == rule.__name__ and fits(line, place) for name, place in ANSWERED)


def test_every_answer_is_to_an_alarm():
    found = {(rule.__name__, line) for rule in RULES for source in sources() for line in rule(source)}
    idle = [
        answer for answer in ANSWERED if not any(name == answer[0] and fits(line, answer[1]) for name, line in found)
    ]
    assert idle == []
    assert all(len(reason) > 20 for reason in ANSWERED.values())


BAD = {
    long_files: '#\n' * (FILE_LINES + 1),
    long_functions: 'def f():\n' + '    pass\n' * FUNCTION_LINES,
    wide_functions: 'class A:\n    def f(self, a, b, c, d, *, e, f, g, h): pass\n',
    large_classes: 'class A:\n' + ''.join(f'    def f{number}(self): pass\n' for number in range(METHODS + 1)),
    long_lines: '#' * (LINE_LENGTH + 1),
    vague_results: 'def f() -> Any: pass\n',
    unfinished: '# TODO: later\n',
    undocumented: '"""Documented."""\nclass A:\n    """So is this."""\n    def f(self): pass\n',
}


@pytest.mark.parametrize('rule', BAD, ids=lambda rule: rule.__name__)
def test_a_rule_finds_what_it_is_for(rule):
    path = sources()[0].path
    assert list(rule(Source(path, BAD[rule], ast.parse(BAD[rule]))))


def test_seven_parameters_and_self_are_allowed():
    text = 'class A:\n    def f(self, a, b, c, d, *, e, f, g): pass\n'
    assert not list(wide_functions(Source(sources()[0].path, text, ast.parse(text))))
