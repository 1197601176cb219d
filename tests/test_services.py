"""The test servers themselves: databases are empty and apart, and nothing stays behind."""

from urllib.parse import urlsplit

import pytest
import sqlalchemy

from tests import services
from tests.services import service


def test_a_database_is_empty_and_usable(database_url):
    engine = sqlalchemy.create_engine(database_url)
    assert sqlalchemy.inspect(engine).get_table_names() == []
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text('CREATE TABLE greeting (word VARCHAR(20))'))
        connection.execute(sqlalchemy.text("INSERT INTO greeting VALUES ('grüße ☂')"))
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text('SELECT word FROM greeting')).scalar() == 'grüße ☂'
    engine.dispose()


@pytest.mark.parametrize('kind', ['postgresql', 'mariadb'])
def test_a_database_can_be_dropped_while_somebody_is_connected(kind):
    server = service(kind)
    url = server.create()
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text('CREATE TABLE held (x INTEGER)'))
        connection.execute(sqlalchemy.text('SELECT * FROM held'))
        server.drop(urlsplit(url).path.lstrip('/'))
        connection.invalidate()
    with pytest.raises(sqlalchemy.exc.OperationalError):
        engine.connect()
    engine.dispose()


def test_a_postgresql_database_can_be_copied():
    server = service('postgresql')
    original = server.create()
    engine = sqlalchemy.create_engine(original)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text('CREATE TABLE kept (x INTEGER)'))
    engine.dispose()
    copy = server.create(template=urlsplit(original).path.lstrip('/'))
    engine = sqlalchemy.create_engine(copy)
    assert sqlalchemy.inspect(engine).get_table_names() == ['kept']
    engine.dispose()
    for url in (copy, original):
        server.drop(urlsplit(url).path.lstrip('/'))


def test_a_broker_answers(rabbit_url, exchange):
    from kombu import Connection

    with Connection(rabbit_url.replace('rabbit://', 'amqp://')) as connection:
        queue = connection.SimpleQueue(exchange, queue_opts={'auto_delete': True})
        queue.put({'hello': 'there'})
        message = queue.get(timeout=30)
        message.ack()
        assert message.payload == {'hello': 'there'}
        queue.close()


def test_only_what_dead_test_runs_left_is_removed():
    mine = services.unique_name()
    assert services.left_over(['convergence', 'postgres', mine, 'convergence_test_99999999_1']) == [
        'convergence_test_99999999_1'
    ]


def test_a_given_url_that_does_not_answer_is_not_replaced_by_another_server(monkeypatch):
    monkeypatch.setenv('CONVERGENCE_TEST_POSTGRESQL_URL', 'postgresql://nobody:hunter2@127.0.0.1:1/postgres')
    with pytest.raises(services.Missing, match='CONVERGENCE_TEST_POSTGRESQL_URL is set') as caught:
        services.Services().get('postgresql')
    assert 'hunter2' not in str(caught.value)
