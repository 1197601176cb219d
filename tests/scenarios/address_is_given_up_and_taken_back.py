"""Only one object of a name can have its address: the old one gives it up first, and on the way back takes it again."""


def address(value, extra=None):
    return Template(
        {
            'A': RsrcDef({'!a': value}, kind='Addressed'),
            'B': RsrcDef({'b': GetRes('A')}),
            **(extra or {}),
        }
    )


engine.rollback_on_failure('addresses')
engine.create_stack('addresses', address('one'))
engine.settle()
engine.update_stack('addresses', address('two'))
engine.settle()
engine.call(verify, address('two'))
engine.fails('C', times=None)
engine.update_stack('addresses', address('three', {'C': RsrcDef({}, ['A'])}))
engine.settle()
engine.call(verify, address('two'))
engine.update_stack('addresses', address('four'))
engine.noop(2)
engine.update_stack('addresses', address('two'))
engine.noop(3)
engine.update_stack('addresses', address('four'))
engine.settle()
engine.call(verify, address('four'))
engine.delete_stack('addresses')
engine.settle()
engine.call(verify, Template())
