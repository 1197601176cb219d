"""A deletion fails beside a nested stack, whose own deletion fails later; who deletes it all again means that, too."""

inner = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
goal = Template({'M': RsrcDef({'v': 0}, nested=inner), 'O': RsrcDef({'v': 0})})

engine.create_stack('s', goal)
engine.settle()
engine.fails('O', action='DELETE')
engine.fails('X', action='DELETE', takes=20)
engine.takes('Y', 20)
engine.delete_stack('s')
engine.settle()
engine.works('X')
engine.works('O')
engine.delete_stack('s')
engine.settle()
engine.call(verify, Template({}))
