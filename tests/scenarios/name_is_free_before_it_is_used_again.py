"""Objects of which there can be one only of a name: replaced, rolled back, replaced anew in the middle, removed."""


def pair(value, extra=None):
    return Template(
        {
            'A': RsrcDef({'!a': value}, kind='Exclusive'),
            'B': RsrcDef({'b': GetRes('A'), 'v': value}),
            'C': RsrcDef({'!c': value}, ['B'], kind='Exclusive', **(extra or {})),
        }
    )


engine.create_stack('keys', pair('1'))
engine.settle()
engine.call(verify, pair('1'))
engine.update_stack('keys', pair('2'))
engine.noop(2)
engine.crash_worker()
engine.settle()
engine.call(verify, pair('2'))
engine.update_stack('keys', pair('3'))
engine.noop(4)
engine.update_stack('keys', pair('4'))
engine.settle()
engine.call(verify, pair('4'))
engine.rollback_on_failure('keys')
engine.fails('A', action='CREATE', times=1)
engine.update_stack('keys', pair('5'))
engine.settle()
engine.call(verify, pair('4'))
engine.delete_stack('keys')
engine.settle()
engine.call(verify, Template())
