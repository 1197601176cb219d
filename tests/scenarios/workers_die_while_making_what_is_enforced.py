"""Workers die in the middle of creations, of updates and of a removal of objects that only another creation under the
same token leads to: some tell their id at once, some late, some never."""

def site(value):
    return Template(
        {
            'A': RsrcDef({'v': value, 'k!': value}, kind='EnforcedLater'),
            'B': RsrcDef({'v': value, 'k!': value}, kind='EnforcedNameless'),
            'C': RsrcDef({'v': value, 'k!': value}, kind='EnforcedBlind'),
            'D': RsrcDef({'v': value, 'k!': value, 'a': GetRes('A')}, kind='Both'),
        }
    )
engine.takes('A', 7)
engine.create_stack('site', site(1))
engine.noop(2)
engine.crash_worker()
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.update_stack('site', site(2))
engine.noop(3)
engine.crash_worker()
engine.update_stack('site', site(3))
engine.noop(3)
engine.crash_worker()
engine.settle()
engine.call(verify, site(3))
engine.delete_stack('site')
engine.settle()
