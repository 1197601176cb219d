"""What is beside a nested stack cannot be suspended; the next update wakes the nested stack, and changes it then."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner):
    """Three levels, with something beside."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner)})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0})})


engine.create_stack('s', tree(inner0))
engine.settle()
engine.takes('O', 20)
engine.fails('O', action='SUSPEND', takes=20, times=None)
engine.suspend_stack('s')
engine.settle()
engine.says('s', 'SUSPEND_FAILED')
engine.works('O')
engine.update_stack('s', tree(inner1))
engine.settle()
