"""Workers die in the middle of creations: what can be found or asked for again is never lost sight of; of what can
not, the user is told."""

wanted = Template(
    {
        'A': RsrcDef({'v': 1}),
        'B': RsrcDef({'v': 1}, kind='Unfindable'),
        'C': RsrcDef({'v': 1}, kind='Blind'),
        'D': RsrcDef({'v': 1}, kind='Enforced'),
        'E': RsrcDef({'v': 1}, kind='Unobservable'),
        'F': RsrcDef({'v': 1}, kind='NamedLater'),
        'G': RsrcDef({'v': 1}, kind='Nameless'),
    }
)
engine.create_stack('site', wanted)
engine.noop(2)
engine.crash_worker()
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('site')
engine.settle()
