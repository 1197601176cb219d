"""F120, F121: engines and workers die at every level."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner, value=0):
    """Three levels, with something beside and on top of each."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'v': value, 'm': GetRes('M')})})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0, 'l': GetRes('L')})})


engine.create_stack('s', tree(inner0))
engine.noop(4)
engine.crash_worker()
engine.noop(3)
engine.crash_engine()
engine.noop(3)
engine.crash_worker()
engine.update_stack('s', tree(inner1, 1))
engine.noop(4)
engine.crash_worker()
engine.settle()
engine.delete_stack('s')
engine.noop(4)
engine.crash_worker()
engine.settle()
