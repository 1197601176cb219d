"""Asks the reference engine what its resource types declare; a program of its own, like `tests.differential.reference`.

Reads beginnings of names from standard input, as a list, and writes a map to standard output: for each type whose name
begins so its ``properties``, ``attributes``, ``update_policy`` and ``support_status``, in the form in which the API of the
reference tells them, and the support of each property beside, which the API keeps for itself.
"""

import json
import sys
import warnings


def property_of(schema):
    """One property, with what is inside of it. What is not implemented is not shown either."""
    from heat.engine import support

    status = schema.support_status if schema.implemented else support.SupportStatus(support.HIDDEN)
    told = {key: value for key, value in dict(schema).items() if key != 'implemented'}
    if schema.schema:
        told['schema'] = {name: property_of(inner) for name, inner in schema.schema.items()}
    return told | {'support_status': status.to_dict()}


def properties_of(schemata):
    """All properties of a map of schemata."""
    from heat.engine import properties

    return {name: property_of(properties.Schema.from_legacy(schema)) for name, schema in schemata.items()}


def type_of(plugin):
    """Return the declarations of a class."""
    from heat.engine import support

    return {
        'properties': properties_of(plugin.properties_schema),
        'attributes': {
            name: dict(schema)
            for name, schema in {**plugin.attributes_schema, **plugin.base_attributes_schema}.items()
            if schema.support_status.status != support.HIDDEN
        },
        'update_policy': properties_of(getattr(plugin, 'update_policy_schema', {})),
        'support_status': plugin.support_status.to_dict(),
    }


def main():
    """Tell all types that are asked for."""
    warnings.simplefilter('ignore')
    from heat.engine import clients
    from heat.engine.plugin_manager import PluginManager, PluginMapping

    beginnings = tuple(json.load(sys.stdin))
    clients.initialise()
    # Not from its environment, which does not tell hidden types.
    found = PluginMapping(['available_resource', 'resource']).load_all(PluginManager('heat.engine.resources'))
    told = {name: type_of(plugin) for name, plugin in found if name.startswith(beginnings)}
    json.dump(told, sys.stdout, default=str)


if __name__ == '__main__':
    main()
