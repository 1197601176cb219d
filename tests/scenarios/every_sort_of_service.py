"""Resources of every type that the simulated cloud has, made, changed in place, checked and removed."""


def site(value):
    return Template(
        {
            'A': RsrcDef({'v': value}),
            'B': RsrcDef({'a': GetRes('A'), 'v': value}, kind='Unfindable'),
            'C': RsrcDef({'v': value}, kind='Blind'),
            'D': RsrcDef({'c': GetAtt('C', 'v')}, kind='Enforced'),
            'E': RsrcDef({'v': value}, ['A'], kind='Unobservable'),
            'F': RsrcDef({'v': value}, kind='Cancellable'),
            'G': RsrcDef({'v': value}, ['F'], kind='Keeper'),
            'H': RsrcDef({'h': 1}, ['G'], kind='Listener'),
            'I': RsrcDef({'v': value, 'h': GetRes('H')}, kind='NamedLater'),
            'J': RsrcDef({'v': value, 'i': GetRes('I')}, kind='Nameless'),
            'K': RsrcDef({'j': GetRes('J')}),
            'L': RsrcDef({'v': value, 'h': GetRes('H')}, kind='Chosen'),
        }
    )


engine.create_stack('site', site('0'))
engine.settle()
engine.call(verify, site('0'))
engine.update_stack('site', site('1'))
engine.settle()
engine.call(verify, site('1'))
engine.check_stack('site')
engine.settle()
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
