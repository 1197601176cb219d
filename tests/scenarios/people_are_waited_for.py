"""A creation waits at a hook, another one for a signal, while workers die; conditions, restrictions and time limits
hold meanwhile."""

first = Template(
    {
        'A': RsrcDef({'v': 1}, kind='Listener'),
        'B': RsrcDef({'a': GetRes('A')}, patience={'time_limits': {'create': 600}, 'retry': {'attempts': 4}}),
        'C': RsrcDef({'v': 1}, condition=False),
    },
    hooks={'B': 'pre-create'},
    restricted={'B': 'update'},
)
second = Template(
    {
        'A': RsrcDef({'v': 1}, kind='Listener'),
        'B': RsrcDef({'a': GetRes('A')}),
        'C': RsrcDef({'v': 1}, condition=True),
    }
)
engine.is_busy('B', times=2)
engine.create_stack('site', first)
engine.noop(2)
engine.crash_worker()
engine.settle()
engine.call(verify, first)
engine.update_stack('site', second)
engine.settle()
engine.call(verify, second)
engine.delete_stack('site')
engine.settle()
