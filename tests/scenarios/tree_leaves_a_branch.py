"""A delete leaves a nested stack as it is: it is in no other from then on, and its own tree goes on to be whole."""

inner = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'m': GetRes('M')})})
tree = Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'l': GetRes('L')})})

engine.create_stack('s', tree)
engine.settle()
engine.delete_stack('s', leave=['L'])
engine.settle()
