"""F128, F165: a group is scaled by signals, by an update, and by both at once; its members stay what they are."""


def group(desired, value=0, batch=1):
    """A group of stacks, and what scales it."""
    member = RsrcDef({'v': value}, nested=Template({'X': RsrcDef({'v': value})})).document()
    del member['depends_on']
    size = {'min_size': 1, 'max_size': 5, 'desired_capacity': desired}
    rolling = {'max_batch_size': batch, 'min_in_service': 1}

    def policy(amount):
        asked = {'scaling_adjustment': amount, 'adjustment_type': 'change_in_capacity'}
        return RsrcDef({'auto_scaling_group_id': GetRes('G'), **asked}, kind='Policy')

    return Template(
        {
            'G': RsrcDef({'resource': member, **size, 'rolling_updates': rolling}, kind='Group'),
            'More': policy(1),
            'Less': policy(-1),
        }
    )


engine.create_stack('s', group(2))
engine.settle()
engine.signal('s', 'More')
engine.settle()
engine.signal('s', 'More')
engine.signal('s', 'More')
engine.signal('s', 'Less')
engine.settle()
engine.signal('s', 'Less')
engine.update_stack('s', group(2, value=1))
engine.signal('s', 'More')
engine.settle()
engine.signal('s', 'Less')
engine.update_stack('s', group(4, value=2))
engine.signal('s', 'Less')
engine.settle()
engine.signal('s', 'Less')
engine.noop(3)
engine.delete_stack('s')
engine.settle()
