"""A signal locks the rows that are built on its own, while the plan of a rollback locks all rows of the stack."""

wanted = Template(
    {
        'A': RsrcDef({'v': 1}, kind='Listener'),
        'B': RsrcDef({'a': GetRes('A')}),
        'C': RsrcDef({'a': GetRes('A')}),
        'D': RsrcDef({'v': 1}),
    }
)
engine.rollback_on_failure('site')
engine.fails('D')
engine.create_stack('site', wanted)
engine.noop(2)
engine.signal('site', 'A')
engine.settle()
