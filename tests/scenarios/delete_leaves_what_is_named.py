"""A delete leaves the objects of some resources: one that is up, one that another worker is busy making, one whose
deletion hangs. Each is named in an event, and nothing else is left."""

site = Template(
    {
        'A': RsrcDef({'v': 1}),
        'B': RsrcDef({'a': GetRes('A')}),
        'C': RsrcDef({'v': 1}, kind='Unfindable'),
        'D': RsrcDef({'v': 1}, kind='Enforced'),
    }
)

engine.create_stack('up', site)
engine.settle()
engine.hangs('B', action='DELETE')
engine.delete_stack('up')
engine.noop(3)
engine.delete_stack('up', leave=['A', 'B'])
engine.settle()
engine.call(verify, Template())
engine.works('B')
engine.blocks('C', 60)
engine.create_stack('busy', site)
engine.noop(3)
engine.takes('A', 90)
engine.delete_stack('busy', leave=['C', 'D'])
engine.settle()
engine.call(verify, Template())
