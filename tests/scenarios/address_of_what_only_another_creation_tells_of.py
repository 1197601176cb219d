"""Of what was made for an address only a second creation tells: what has it gives it up all the same, also where its maker
died before he said what he has made."""


def address(value):
    return Template({'A': RsrcDef({'!a': value}, kind='EnforcedAddressed')})


engine.create_stack('addresses', address('one'))
engine.settle()
engine.blocks('A', action='CREATE', seconds=20)
engine.update_stack('addresses', address('two'))
engine.noop(5)
engine.update_stack('addresses', address('one'))
engine.settle()
engine.call(verify, address('one'))
engine.blocks('A', action='CREATE', afterwards=True, seconds=20)
engine.update_stack('addresses', address('two'))
engine.noop(5)
engine.crash_worker()
engine.update_stack('addresses', address('one'))
engine.settle()
engine.call(verify, address('one'))
engine.update_stack('addresses', address('two'))
engine.noop(4)
engine.blocks('A', action='UPDATE', seconds=20)
engine.update_stack('addresses', address('one'))
engine.noop(1)
engine.update_stack('addresses', address('two'))
engine.settle()
engine.call(verify, address('two'))
