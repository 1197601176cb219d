"""An object of which there can be one only of a name could not be removed; its name is wanted again: it goes first."""

key = RsrcDef({'v': 1}, kind='Exclusive')
both = Template({'A': key, 'B': RsrcDef({'a': GetRes('A')})})
engine.create_stack('keys', both)
engine.settle()
engine.fails('A', action='DELETE', times=1)
engine.update_stack('keys', Template({'C': RsrcDef({'v': 1})}))
engine.settle()
engine.says('keys', 'UPDATE_FAILED')
engine.update_stack('keys', both)
engine.settle()
engine.call(verify, both)
