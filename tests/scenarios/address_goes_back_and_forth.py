"""Each change of mind about an address comes in the middle of the one before: whoever is wanted last has it."""


def address(value):
    return Template({'A': RsrcDef({'!a': value}, kind='Addressed'), 'B': RsrcDef({'b': GetRes('A')})})


engine.create_stack('addresses', address('one'))
engine.settle()
engine.update_stack('addresses', address('two'))
engine.noop(5)
engine.update_stack('addresses', address('one'))
engine.noop(2)
engine.update_stack('addresses', address('two'))
engine.settle()
engine.call(verify, address('two'))
