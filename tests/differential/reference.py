"""Evaluates expressions with the reference engine as a library; a program of its own, for it shares no process with us.

Reads a list of cases as JSON from standard input and writes a list of answers to standard output: ``{"value": …}`` or
``{"refused": text}``. It imports nothing of Convergence: the interpreter that runs it may have the reference alone.
"""

import json
import sys
import warnings

VERSION = '27.0.1'


class Stack:
    """As much of a stack as functions without resources need."""

    name, id, strict_validate = 'shop', 'id-1', True

    def __init__(self, template):
        self.t, self.env = template, template.env
        self.parameters = template.parameters(None, {})

    def __contains__(self, name):
        return False


def answer(case, library):
    """Return the result of the reference for one case."""
    document = {case['key']: case['version'], case['section']: case['parameters']}
    try:
        template = library.template.Template(document, files=case['files'], env=library.environment.Environment({}))
        parsed = template.parse(Stack(template), case['value'])
        library.function.validate(parsed)
        value = library.function.resolve(parsed)
        return {'value': json.loads(json.dumps(value, allow_nan=False))}
    except Exception as error:  # noqa: BLE001 - whatever it raises, it does not take the expression
        return {'refused': f'{type(error).__name__}: {error}'[:300]}


def main():
    """Answer all cases."""
    warnings.simplefilter('ignore')
    from importlib.metadata import version

    if version('openstack-heat') != VERSION:
        sys.exit(f'openstack-heat {version("openstack-heat")} is installed; {VERSION} is what is compared with')
    from heat import engine
    from heat.engine import environment, function, template

    assert environment and function and template
    json.dump([answer(case, engine) for case in json.load(sys.stdin)], sys.stdout)


if __name__ == '__main__':
    main()
