"""F098: a patient cancel reaches every level: what runs comes to its end there, and nothing begins anywhere."""

inner = Template({'X': RsrcDef({'v': 1}), 'Y': RsrcDef({'v': 1, 'x': GetRes('X')})})
middle = Template({'M': RsrcDef({'v': 0}, nested=inner), 'N': RsrcDef({'m': GetRes('M')})})
tree = Template({'L': RsrcDef({'v': 0}, nested=middle), 'O': RsrcDef({'l': GetRes('L')})})

engine.takes('X', 20)
engine.create_stack('s', tree)
engine.noop(9)
engine.cancel_patiently('s')
engine.settle()
engine.says('s', 'CREATE_FAILED: Stack CREATE cancelled', 'CREATE_COMPLETE')
engine.update_stack('s', tree)
engine.settle()
