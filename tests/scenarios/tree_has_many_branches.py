"""Branches that wait for the same thread are begun together, whatever becomes of the one who asks for it."""


def tree(value, count=6):
    """Branches beside each other, and things between them."""
    branch = Template({'X': RsrcDef({'v': value}), 'Y': RsrcDef({'v': 0, 'x': GetRes('X')})})
    branches = {f'{name}1': RsrcDef({'v': 0}, nested=branch) for name in 'ABCDEF'[:count]}
    things = {f'{name}2': RsrcDef({'v': value}) for name in 'BCD'}
    return Template({**branches, **things, 'Z': RsrcDef({'v': 0, 'b': GetRes('A1')})})


engine.create_stack('s', tree(1))
engine.settle()
engine.update_stack('s', tree(2))
engine.noop(12)
engine.update_stack('s', tree(3, 5))
engine.settle()
engine.suspend_stack('s')
engine.settle()
engine.resume_stack('s')
engine.settle()
engine.delete_stack('s')
engine.settle()
