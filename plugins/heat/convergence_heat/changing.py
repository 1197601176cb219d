"""An update as Heat makes it: from two versions of a resource to its class's own handler."""

from __future__ import annotations

from typing import Any

from heat.engine.resource import UpdateReplace

from convergence.resources.values import named
from convergence_heat.halfway import BY_DIFFERENCE
from convergence_heat.operation import Operation


def changes(at_work: Operation) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return the difference of two versions of a resource, as Heat derives it before ``handle_update``.

    :returns: the desired version, the difference, the desired properties, and those that change.
    :raises UpdateReplace: the change needs another object.
    """
    one, call = at_work.one, at_work.call
    before, after = one.t, at_work.definition(call.properties)
    after_props, before_props = one._prepare_update_props(after, before)
    if one.needs_replace(after_props):
        raise UpdateReplace(one.name)
    after_props.validate()
    one.properties = before_props
    differences = one.update_template_diff(after.freeze(), before)
    if differences and one.needs_replace_with_tmpl_diff(differences):
        raise UpdateReplace(one.name)
    changed = one.update_template_diff_properties(after_props, before_props)
    # Properties that an earlier attempt may have changed are set again, even to their old values.
    changed |= {name: after_props[name] for each in one.tried for name in each if name in after_props}
    return after, differences, after_props, changed


def updated(at_work: Operation) -> Any:
    """Change it; what ``handle_update`` says of that."""
    one = at_work.one
    after, differences, after_props, changed = changes(at_work)
    before_props, given = one.properties, named(at_work.call.properties, given=True)
    one.begin_to_change({name: given.get(name) for name in sorted(changed)})
    if at_work.name in BY_DIFFERENCE:
        for tried in one.tried:
            one.properties = {**before_props, **tried}
            one.handle_update(after, differences, dict(changed))
        one.properties = before_props
    cookie = one.handle_update(after, differences, changed)
    one.keep_names(after_props, at_work.call.properties)
    return cookie
