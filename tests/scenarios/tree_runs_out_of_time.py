"""F110: the time limit of the stack at the top ends what goes on at the bottom."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner, value=0):
    """Three levels, with something beside and on top of each."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'v': value, 'm': GetRes('M')})})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0, 'l': GetRes('L')})})


engine.time_limit('s', 5)
engine.hangs('Y', action='CREATE', times=None)
engine.create_stack('s', tree(inner0))
engine.settle()
engine.works('Y')
engine.update_stack('s', tree(inner0))
engine.settle()
