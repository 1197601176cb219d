"""The page of figures is the one that they lead to, and tells what more workers would do."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.bench.charts import Line, chart
from tests.bench.costs import Cost, capacity
from tests.bench.report import FIGURES, PAGE, PICTURES, page, plots

COST = Cost(engine=0.0003, worker=0.005, database=0.0025, broker=0.0005)


def test_the_page_and_its_plots_are_those_of_the_figures():
    figures = json.loads(FIGURES.read_text(encoding='utf-8'))
    assert PAGE.read_text(encoding='utf-8') == page(figures), 'run python -m tests.bench.report'
    drawn = {f'{name}.svg': drawing for name, (_, drawing) in plots(figures).items()}
    assert {path.name: path.read_text(encoding='utf-8') for path in PICTURES.glob('*.svg')} == drawn


@pytest.mark.parametrize(
    ('workers', 'full', 'reached', 'installations'),
    [(1, 'the workers', 200, 1), (64, 'the workers', 12_800, 1), (100, 'the database', 12_800, 2)],
)
def test_the_part_that_is_full_first_bounds_all_others(workers, full, reached, installations):
    found = capacity(COST, workers)
    assert (found.full, round(found.reached), found.installations) == (full, reached, installations)
    assert found.database_cores == pytest.approx(workers / 2)


def test_a_broker_may_be_full_first():
    assert capacity(replace(COST, broker=0.01), 1000).full == 'the broker'


def test_a_plot_has_a_line_for_each_series():
    drawn = chart('so <many>', 'below', [Line('one', [(1, 2.0), (1000, 7.0)]), Line('two', [(10, 3.0), (100, 1.0)])])
    found = ElementTree.fromstring(drawn).findall('{http://www.w3.org/2000/svg}polyline')
    assert [len(each.attrib['points'].split()) for each in found] == [2, 2]


def test_plots_are_drawn_of_what_was_measured_at_several_sizes():
    def measured(size, workers=2):
        took = {'seconds': size / 100, 'cpu_s': {'worker': size / 200}, 'peak_bytes': {}, 'counts': {}, 'server': None}
        of = {'installation': 'mariadb', 'shape': 'flat', 'operation': 'create'}
        return {**of, 'size': size, 'workers': workers, 'took': took, 'floor_s': size / 400}

    figures = {'machine': {'cores': 2, 'python': '3'}, 'operations': [measured(10), measured(1000)]}
    assert plots(figures).keys() == {'sizes', 'cpu'}
    figures['workers'] = [measured(100, workers) for workers in (1, 2, 4)]
    assert plots(figures).keys() == {'sizes', 'cpu', 'workers'}
    text = page(figures)
    assert '.. image:: plots/workers.svg' in text and 'More workers: mariadb' in text
    assert '0.25' in text, 'the part of the bare loop'
