"""Asks the reference engine how properties read values; a program of its own, like `tests.differential.reference`.

Reads values from standard input, as a list, and writes a map to standard output: by type of property, in small letters, a
list of answers, ``{"value": …}`` or ``{"refused": text}``.
"""

import json
import sys
import warnings


def answer(kind, value, properties):
    """Return the coerced value of a required property."""
    schemata = {'one': properties.Schema(kind, required=True)}
    try:
        read = properties.Properties(schemata, {'one': value})
        read.validate()
        return {'value': json.loads(json.dumps(read['one'], allow_nan=False))}
    except Exception as error:  # noqa: BLE001 - whatever it raises, it does not take the value
        return {'refused': f'{type(error).__name__}: {error}'[:300]}


def main():
    """Answer for all values."""
    warnings.simplefilter('ignore')
    from heat.engine import properties

    values = json.load(sys.stdin)
    kinds = [
        getattr(properties.Schema, name) for name in ('STRING', 'INTEGER', 'NUMBER', 'BOOLEAN', 'LIST', 'MAP', 'ANY')
    ]
    json.dump({kind.lower(): [answer(kind, value, properties) for value in values] for kind in kinds}, sys.stdout)


if __name__ == '__main__':
    main()
