"""F115: an update takes over at every level from the one that is under way there."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner, value=0):
    """Three levels, with something beside and on top of each."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'v': value, 'm': GetRes('M')})})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0, 'l': GetRes('L')})})


engine.takes('X', 30)
engine.create_stack('s', tree(inner0))
engine.noop(8)
engine.update_stack('s', tree(inner1, 1))
engine.noop(8)
engine.update_stack('s', tree(inner0, 1))
engine.noop(3)
engine.update_stack('s', tree(inner1, 2))
engine.settle()
