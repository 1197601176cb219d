"""The tables of docs/failures.rst are written from the figures of a run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

from tests.chaos import cancelling, clusters, kinds, loss, outages, storm, tables

CRASHES = {'trials': 230, 'run': 48, 'killed': 44, 'same_end': 44, 'median_delay_s': 2.7, 'longest_delay_s': 7.6}
FIGURES = {
    'kinds mariadb': {
        **vars(kinds.Found(cases=35, told=12, longest_s=5.04, deaths=Counter({'worker -9': 20}))),
        'of': 168,
    },
    'outages postgresql': asdict(outages.Found([outages.Outage('the broker is away', 0.01, [])])),
    'outages mariadb': asdict(outages.Found([outages.Outage('all workers frozen', 1.0, [])])),
    'clusters mariadb, galera': asdict(clusters.Found('Galera', 9, {'a server killed': 15.0})),
    'clusters postgresql, rabbit': 'skipped: there is no program rabbitmq-server',
    'crashes postgresql': CRASHES,
    'messages postgresql': [asdict(loss.Lost(0.1, 'create', 1.94, 7, ''))],
    'cancel postgresql': asdict(cancelling.Cancelled(0.2, 2.6, 1.7, 0, '')),
    'storm mariadb': vars(storm.Storm(8, calm_s=53.0, updates=8, made=1156, faults=Counter({'workers killed': 14}))),
}
"""As a run writes them."""


def test_every_table_of_the_page_is_drawn_from_figures():
    page = tables.PAGE.read_text(encoding='utf-8')
    assert sorted(tables.places(page)) == sorted(tables.TABLES)
    figures = json.loads(json.dumps(FIGURES))
    assert all(draw(figures) for draw in tables.TABLES.values())
    drawn = tables.renewed(page, figures)
    assert tables.places(drawn) == tables.places(page)
    assert tables.renewed(drawn, figures) == drawn
    for row in (
        'MariaDB   35     20              0           0          12        5.0 s',
        'the broker is away  0.0 s       not run',
        'Galera   a server killed  15.0 s',
        '10%   1.9',
        'Workers killed  14',
    ):
        assert f'\n{row}\n' in drawn


def test_what_was_not_run_stays_as_it_is():
    page = tables.PAGE.read_text(encoding='utf-8')
    assert tables.renewed(page, {}) == page
    before, _, after = page.partition('.. figures: cancel\n')
    drawn = tables.renewed(page, {'cancel mariadb': FIGURES['cancel postgresql']})
    assert drawn.startswith(before) and drawn.endswith(after.partition('.. end of figures')[2])
    assert drawn != page
