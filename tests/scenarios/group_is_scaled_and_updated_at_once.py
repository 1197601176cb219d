"""F128: a signal and an update come at the same moment: one of them is later, and the group is what that one says."""


def group(value):
    """A group of things, and what scales it."""
    member = {'type': 'Convergence::Simulated::Thing', 'properties': {'v': value}}
    rolling = {'max_batch_size': 5}
    asked = {'scaling_adjustment': 1, 'adjustment_type': 'change_in_capacity'}
    return Template(
        {
            'G': RsrcDef({'resource': member, 'min_size': 1, 'max_size': 9, 'rolling_updates': rolling}, kind='Group'),
            'More': RsrcDef({'auto_scaling_group_id': GetRes('G'), **asked}, kind='Policy'),
        }
    )


engine.create_stack('s', group(0))
engine.settle()
for value in range(1, 5):
    engine.update_stack('s', group(value))
    engine.signal('s', 'More')
    engine.settle()
