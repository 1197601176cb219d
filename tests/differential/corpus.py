"""Reads the templates that the packages of the reference engine carry, and what the reference makes of each.

A program of its own, like `tests.differential.reference`. The templates stand in files, and in the tests of the packages
as texts; they are read where they are installed. It writes a list to standard output: the name and the text of a template,
the values given for its parameters, and either ``resources`` (for each what it requires) and ``outputs``, or ``refused``.
"""

import ast
import importlib.util
import json
import sys
import warnings
from pathlib import Path

PACKAGES = ('heat', 'heat_integrationtests', 'heatclient')
KEYS = ('heat_template_version', 'HeatTemplateFormatVersion', 'AWSTemplateFormatVersion')
VALUES = {'string': 'x', 'number': 1, 'comma_delimited_list': ['a', 'b'], 'json': {'a': 'b'}, 'boolean': True}


class Resource:
    """As much of a resource as others need to require it."""

    strict_dependency = True

    def __init__(self, name):
        self.name = name


class Stack:
    """As much of a stack as a template needs to tell its resources and what they require."""

    name, id, strict_validate = 'shop', 'id-1', True

    def __init__(self, template):
        self.t, self.env, self.defn = template, template.env, self
        self.parameters = template.parameters(None, template.env.params)
        self._names = set(template[template.RESOURCES] or {})
        self._present = self._names

    def only(self, names):
        """Conditions have left these."""
        self._present = set(names)

    def all_rsrc_names(self):
        """The resources of the template, whatever conditions say."""
        return self._names

    def __contains__(self, name):
        return name in self._present

    def __getitem__(self, name):
        return Resource(name)


def texts():
    """The name of each text that may be a template, and the text."""
    for package in PACKAGES:
        found = importlib.util.find_spec(package)
        if found is None or not found.origin:
            continue
        root = Path(found.origin).parent
        for path in sorted(root.rglob('*')):
            name = str(path.relative_to(root.parent))
            if path.suffix in ('.yaml', '.template'):
                yield name, path.read_text(encoding='utf-8')
            elif path.suffix == '.py' and 'test' in name:
                for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield f'{name}:{node.lineno}', node.value


def given_for(template):
    """A value for each parameter without a default; the same for both sides."""
    values = {}
    for name, schema in template.param_schemata({}).items():
        if schema.default is None:
            allowed = [each for each in schema.constraints if type(each).__name__ == 'AllowedValues']
            kind = {'String': 'string', 'Number': 'number', 'CommaDelimitedList': 'comma_delimited_list'}
            values[name] = allowed[0].allowed[0] if allowed else VALUES[kind.get(schema.type, schema.type.lower())]
    return values


def answer(document, library):
    """Return the result of the reference for one template."""
    values = {}
    try:
        values = given_for(library.template.Template(document))
        template = library.template.Template(document, env=library.environment.Environment({'parameters': values}))
        template.validate()
        library.parameter_groups.ParameterGroups(template).validate()
        stack = Stack(template)
        definitions = template.resource_definitions(stack)
        stack.only(definitions)
        resources = {
            name: sorted(other.name for other in each.dependencies(stack)) for name, each in definitions.items()
        }
        return values, {'resources': resources, 'outputs': sorted(template.outputs(stack))}
    except Exception as error:  # noqa: BLE001 - whatever it raises, it does not take the template
        return values, {'refused': f'{type(error).__name__}: {error}'[:300]}


def main():
    """Answer for all templates."""
    warnings.simplefilter('ignore')
    from heat import engine
    from heat.common import template_format
    from heat.engine import environment, parameter_groups, template

    assert environment and parameter_groups and template
    seen, answers = set(), []
    for name, text in texts():
        if not any(key in text for key in KEYS) or text in seen:
            continue
        seen.add(text)
        try:
            document = template_format.parse(text)
        except Exception:  # noqa: BLE001 - a text that is no template, or the part of one
            document = {}
        if not any(key in document for key in KEYS):
            continue
        values, said = answer(document, engine)
        answers.append({'name': name, 'text': text, 'parameters': values, **said})
    json.dump(answers, sys.stdout, default=str)


if __name__ == '__main__':
    main()
