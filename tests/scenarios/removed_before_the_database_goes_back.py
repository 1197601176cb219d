"""What was made and removed is forgotten, with its removal: it is made again under its token, and there is one of it."""

wanted = Template({'A': RsrcDef({'v': 1}, [], kind='Enforced'), 'B': RsrcDef({'v': 1}, [])})
engine.create_stack('s', wanted)
engine.settle()
engine.update_stack('s', Template({'B': RsrcDef({'v': 1}, [])}))
engine.settle()
engine.database_goes_back(8)
engine.settle()
engine.update_stack('s', wanted)
engine.settle()
engine.call(verify, wanted)
