"""The processes, and what goes between them."""

from __future__ import annotations

from tests.pictures.drawing import Drawing


def architecture() -> str:
    """Clients, the five kinds of programs, broker, database, and the services in which objects are."""
    drawing = Drawing(
        900, 470, 'The processes of Convergence: clients, API, broker, engines, workers, observers, database'
    )
    drawing.box(20, 40, 150, 84, ['clients', 'convergence stack ...', 'openstack stack ...', 'your program'])
    drawing.box(240, 40, 160, 84, ['convergence-api', 'any number', 'HTTP, who may do what'], 'busy')
    drawing.box(480, 40, 90, 200, ['broker', 'hints only:', 'it may lose', 'messages'], 'back')
    drawing.box(690, 40, 190, 84, ['convergence-engine', 'any number', 'plans, answers, sweeps'], 'busy')
    drawing.box(
        690, 260, 190, 100, ['database', 'the rows are the work:', 'stacks, resources, nodes,', 'who owns what'], 'good'
    )
    drawing.box(
        240, 180, 160, 84, ['convergence-worker', 'any number', 'one step at a time,', 'in each thread'], 'busy'
    )
    drawing.box(20, 180, 150, 244, ['services', 'clouds, machines,', 'files: what resource', 'types look after'])
    drawing.box(
        240, 340, 160, 84, ['convergence-observer', 'any number', 'compares with reality,', 'touches nothing'], 'busy'
    )
    drawing.arrow((170, 82), (240, 82), label='HTTP')
    drawing.arrow((400, 82), (480, 82), label='call')
    drawing.arrow((570, 82), (690, 82), label='create, update ...')
    drawing.arrow((690, 108), (570, 108), dashed=True)
    drawing.text(630, 123, 'cast: ready nodes', 'faint small', 'middle')
    drawing.arrow((480, 205), (400, 205), dashed=True, label='check node')
    drawing.arrow((400, 234), (480, 234), dashed=True)
    drawing.text(440, 250, 'the next', 'faint small', 'middle')
    drawing.arrow((240, 222), (170, 222), both=True)
    drawing.text(205, 210, 'make,', 'faint small', 'middle')
    drawing.text(205, 242, 'find ...', 'faint small', 'middle')
    drawing.arrow((785, 124), (785, 260), both=True)
    drawing.text(795, 180, 'plans,', 'faint small')
    drawing.text(795, 196, 'outcomes', 'faint small')
    drawing.arrow((320, 264), (320, 325), (690, 325), both=True)
    drawing.text(505, 317, 'claim a row; store the result, count down what waits for it', 'faint small', 'middle')
    drawing.arrow((240, 370), (170, 370))
    drawing.text(205, 362, 'look', 'faint small', 'middle')
    drawing.arrow((170, 398), (240, 398), dashed=True)
    drawing.text(205, 414, 'events', 'faint small', 'middle')
    drawing.arrow((400, 400), (785, 400), (785, 360), both=True)
    drawing.text(590, 392, 'lease what is due; write what was seen', 'faint small', 'middle')
    drawing.text(
        20, 452, 'With nothing configured: all in one process, with an SQLite file and without a broker.', 'faint small'
    )
    return drawing.svg()
