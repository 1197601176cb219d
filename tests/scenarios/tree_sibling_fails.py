"""F118: what fails beside a nested stack leaves nothing running in it."""

inner0 = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
inner1 = Template({'X': RsrcDef({'v': 2}), 'Z': RsrcDef({'v': 1, 'x': GetRes('X')})})


def tree(inner, value=0):
    """Three levels, with something beside and on top of each."""
    middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'v': value, 'm': GetRes('M')})})
    return Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0, 'l': GetRes('L')})})


engine.hangs('X', action='CREATE')
middle = Template({'M': RsrcDef({'v': 0}, nested=inner0)})
goal = Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'v': 0})})
engine.takes('O', 20)
engine.fails('O', action='CREATE', takes=20)
engine.create_stack('s', goal)
engine.settle()
engine.works('X')
engine.update_stack('s', goal)
engine.settle()
