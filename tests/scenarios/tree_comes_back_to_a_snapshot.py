"""A snapshot of a tree is a snapshot of every stack in it; all of them come back to it, also those that were removed."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner, value=0):
    """Three levels, with something beside and on top of each."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'v': value, 'm': GetRes('M')})})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0, 'l': GetRes('L')})})


engine.create_stack('s', tree(inner0))
engine.settle()
engine.snapshot_stack('s')
engine.settle()
engine.update_stack('s', tree(inner1, 1))
engine.settle()
engine.restore_stack('s')
engine.settle()
engine.update_stack('s', Template({'O': RsrcDef({'v': 0})}))
engine.settle()
engine.restore_stack('s')
engine.settle()
engine.call(lambda: test.assertEqual(4, len(reality.all_resources())))
engine.delete_snapshot('s')
engine.delete_stack('s')
engine.settle()
