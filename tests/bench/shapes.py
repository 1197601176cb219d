"""Templates of a given size: the ways in which resources depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

LAYERS = 10
JOINED = 3


def flat(number: int, size: int) -> Iterable[int]:
    """Nothing requires anything."""
    return ()


def chain(number: int, size: int) -> Iterable[int]:
    """Each resource requires the one before."""
    return (number - 1,) if number else ()


def tree(number: int, size: int) -> Iterable[int]:
    """Each resource requires its parent, which has two children."""
    return ((number - 1) // 2,) if number else ()


def layers(number: int, size: int) -> Iterable[int]:
    """Ten layers; each resource requires three of the layer before."""
    width = max(1, size // LAYERS)
    layer, place = divmod(number, width)
    if not layer:
        return ()
    return sorted({(layer - 1) * width + (place + step) % width for step in range(JOINED)})


SHAPES: Mapping[str, Callable[[int, int], Iterable[int]]] = {
    'flat': flat,
    'chain': chain,
    'tree': tree,
    'layers': layers,
}
"""For each shape the numbers of the resources that a resource requires, from its number and the size of the stack."""


def template(shape: str, size: int, changed: Collection[int] = ()) -> str:
    """A template of `size` resources. They take no time by themselves, and hand on their names.

    :param shape: one of `SHAPES`.
    :param changed: numbers of the resources whose value is another one.
    """
    required = SHAPES[shape]
    lines = ['heat_template_version: 2018-08-31', 'resources:']
    for number in range(size):
        used = ', '.join(f'{{get_resource: r{other}}}' for other in required(number, size))
        value = number + size if number in changed else number
        lines += [f'  r{number}:', '    type: OS::Heat::Value', f'    properties: {{value: [{value}, {used}]}}']
    return '\n'.join(lines) + '\n'
