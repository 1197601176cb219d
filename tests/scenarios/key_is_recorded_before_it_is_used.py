"""Workers die around a creation that chooses a key, records it, and makes the object under it; then all is removed."""

template = Template(
    {
        'A': RsrcDef({'a': '1'}, kind='Chosen'),
        'B': RsrcDef({'b': GetRes('A')}, kind='Chosen'),
        'C': RsrcDef({'c': '1'}, kind='Prepared'),
        'D': RsrcDef({'d': GetRes('C')}, kind='Prepared'),
    }
)

engine.create_stack('keys', template)
engine.noop(3)
engine.crash_worker()
engine.settle()
engine.call(verify, template)
engine.delete_stack('keys')
engine.settle()
engine.call(verify, Template())
