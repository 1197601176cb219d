"""The tables. Column names are the field names of the rows in `convergence.core.rows`.

There are no foreign keys: checking one locks the row it points at, and a transaction that holds a resource row must
never wait for a stack row (see docs/decisions). Related rows are written and removed in one transaction instead.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

from convergence.core.model import (
    Action,
    Definition,
    DriftPolicy,
    Handover,
    Hook,
    NodeStatus,
    Output,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.observation import ObservationSource, ObservedState
from convergence.core.rows import Acceptance, Pending, Retry
from convergence.core.scaling import Scaling
from convergence.credentials.model import CredentialsStatus, Method
from convergence.db.schema.columns import LONG_TEXT, Figures, JsonText, Series, Valued, Word
from convergence.notices import NoticeKind, NoticeSubject

METADATA = MetaData(
    naming_convention={
        'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
        'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
        'pk': 'pk_%(table_name)s',
    }
)

ID = String(36)
NAME = String(255)
OPTIONS: dict[str, Any] = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4', 'mysql_collate': 'utf8mb4_bin'}
BY_TEXT: dict[str, Any] = {'postgresql_using': 'hash', 'mysql_length': 64, 'mariadb_length': 64}

STACK = Table(
    'stack',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('name', NAME, nullable=False),
    Column('live_name', NAME),  # the name while the stack lives, NULL afterwards: names are unique among the living
    Column('project_id', String(64), nullable=False),
    Column('action', Word(Action), nullable=False),
    Column('status', Word(Status), nullable=False),
    Column('status_reason', LONG_TEXT, nullable=False),
    Column('template_id', ID),
    Column('last_good_template_id', ID),
    Column('traversal_id', ID),
    Column('timeout_mins', Integer, nullable=False),
    Column('disable_rollback', Boolean, nullable=False),
    Column('created_at', Double, nullable=False),
    Column('updated_at', Double),
    Column('deleted_at', Double),
    Column('tags', Series, nullable=False),
    Column('request_key', NAME),
    Column('request_digest', String(64)),
    Column('parent_id', ID, index=True),
    Column('parent_resource_id', ID, index=True),
    Column('root_id', ID, index=True),
    Column('nested_depth', Integer, nullable=False),
    Column('resource_count', Integer, nullable=False),
    Column('type_rules', Figures),
    Column('credentials_id', ID, index=True),
    Column('previous_good_template_id', ID),
    Column('drift_policy', Word(DriftPolicy), nullable=False),
    Column('policy_propagated', Boolean, nullable=False, default=True),  # True once nested stacks have the drift policy
    Column('lock_count', Integer, nullable=False, server_default='0'),  # see `convergence.db.statements.loading.plans`
    UniqueConstraint('project_id', 'live_name'),
    UniqueConstraint('project_id', 'request_key'),
    Index('ix_stack_project_id_created_at', 'project_id', 'created_at'),
    Index('ix_stack_deleted_at', 'deleted_at'),
    **OPTIONS,
)

# A transaction that stores a new stack locks the row of its project first, so one transaction at a time counts the
# stacks of a project.
PROJECT = Table('project', METADATA, Column('id', String(64), primary_key=True), **OPTIONS)

# Counts the resources of a tree of stacks. No other step locks this row, unlike the row of the root stack.
TREE = Table(
    'tree',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('resource_count', Integer, nullable=False),
    **OPTIONS,
)

TEMPLATE = Table(
    'template',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False, index=True),
    Column('content', JsonText(dict), nullable=False),
    Column('summary', JsonText(dict, lenient=True), nullable=False),
    Column('equivalent_template_id', ID),
    Column('changed_names', Series, nullable=False),
    **OPTIONS,
)

TRAVERSAL = Table(
    'traversal',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False),
    Column('action', Word(Action), nullable=False),
    Column('status', Word(TraversalStatus), nullable=False),
    Column('template_id', ID),
    Column('rollback_on_failure', Boolean, nullable=False),
    Column('started_at', Double, nullable=False),
    Column('deadline', Double, nullable=False),
    Column('node_count', Integer, nullable=False),
    Column('complete_number', Integer, nullable=False),
    Column('unchanged', Integer, nullable=False),
    Column('finished_at', Double),
    Column('reason', LONG_TEXT, nullable=False),
    Column('failed_phase', Word(Phase)),
    Column('request_id', String(64), nullable=False),
    Column('cancels', Boolean, nullable=False),
    Column('failed_name', NAME),
    Column('stalled_at', Double),
    Column('retains', Boolean, nullable=False),
    Column('cause', LONG_TEXT, nullable=False),
    Column('left_rows', Series, nullable=False),
    Column('for_parent', Boolean, nullable=False),
    Column('in_service_at', Double),
    Column('observes', Boolean, nullable=False),
    Column('scaling', Valued(Scaling, lenient=True)),
    Column('repair_attempt', Integer, nullable=False),
    Column('swept', Boolean, nullable=False, default=False),  # its nodes have been removed
    Column('progress_notified_at', Double),  # when its progress was last told
    Column('observations_scheduled', Boolean, nullable=False, default=False),  # whether what it has left is observed
    Index('ix_traversal_stack_id_started_at', 'stack_id', 'started_at'),
    Index('ix_traversal_swept_status', 'swept', 'status'),
    Index('ix_traversal_enrolled', 'observations_scheduled'),
    Index('ix_traversal_repair_attempt_status', 'repair_attempt', 'status'),
    **OPTIONS,
)

SYNC_POINT = Table(
    'sync_point',
    METADATA,
    Column('traversal_id', ID, primary_key=True),
    Column('number', Integer, primary_key=True, autoincrement=False),
    Column('phase', Word(Phase), nullable=False),
    Column('status', Word(NodeStatus), nullable=False),
    Column('name', NAME),
    Column('resource_id', ID),
    Column('definition', Valued(Definition, lenient=True)),
    Column('asked', Series, nullable=False),
    Column('waiting', Integer, nullable=False),
    Column('requires', Series, nullable=False),
    Column('required_by', Series, nullable=False),
    Column('output', Valued(Output, lenient=True)),
    Column('next_in_backlog', Integer),
    Column('notified_at', Double),  # time of the last dispatch of the ready node
    Column('finished_at', Double),
    # In this order it leads to the nodes of a resource, and never seems to be a way to all nodes of a traversal.
    Index('ix_sync_point_resource_id_traversal_id', 'resource_id', 'traversal_id'),
    # PostgreSQL keeps the nodes there that are looked for, and does not come by it to a node whose key it is given.
    Index('ix_sync_point_status_notified_at', 'status', 'notified_at', postgresql_where=text("status = 'READY'")),
    **OPTIONS,
)

RESOURCE = Table(
    'resource',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False, index=True),
    Column('name', NAME, nullable=False),
    Column('type', NAME, nullable=False),
    Column('action', Word(Action), nullable=False),
    Column('status', Word(Status), nullable=False),
    Column('created_at', Double, nullable=False),
    Column('status_reason', LONG_TEXT, nullable=False),
    Column('physical_id', LONG_TEXT),
    Column('definition', Valued(Definition, lenient=True)),
    Column('properties', JsonText(dict, lenient=True), nullable=False),
    Column('pending', Valued(Pending, lenient=True)),
    Column('data', JsonText(dict, lenient=True), nullable=False),
    Column('output', Valued(Output, lenient=True)),
    Column('digest', String(64)),
    Column('requires', Series, nullable=False),
    Column('replaces', ID),
    Column('replaced_by', ID),
    Column('template_id', ID),
    Column('owner', ID),
    Column('fence', Integer, nullable=False),
    Column('token', ID),
    Column('progress', JsonText(dict, lenient=True)),
    Column('wake_at', Double),
    Column('updated_at', Double),
    Column('began_at', Double),
    Column('search_until', Double),
    Column('traversal_id', ID),
    Column('retry', Valued(Retry, lenient=True)),
    Column('deadline', Double),
    Column('crash_count', Integer, nullable=False),
    Column('event_count', Integer, nullable=False),
    Column('polled_event_count', Integer, nullable=False),
    Column('hook', Word(Hook)),
    Column('hook_traversal_id', ID),
    Column('cleared', Word(Hook)),
    Column('cleared_traversal_id', ID),
    Column('nothing_made', Boolean, nullable=False),
    Column('clearing', Boolean, nullable=False),
    Column('repairable', Boolean, nullable=False),
    Column('accepted', Valued(Acceptance, lenient=True)),
    Column('handover', Word(Handover)),
    Column('revocation', String(64), nullable=False),
    Column('lock_count', Integer, nullable=False, server_default='0'),  # see `convergence.db.statements.loading.plans`
    Index('ix_resource_owner', 'owner'),
    Index('ix_resource_status_owner', 'status', 'owner'),
    # Ids may be longer than an index of some databases takes: PostgreSQL keeps digests of them, MariaDB how they begin.
    Index('ix_resource_physical_id', 'physical_id', **BY_TEXT),
    **OPTIONS,
)

# Observed states of the objects of resources: see `convergence.core.observation`.
OBSERVATION = Table(
    'observation',
    METADATA,
    Column('resource_id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False, index=True),
    Column('name', NAME, nullable=False),
    Column('fence', Integer, nullable=False),
    Column('found', Word(ObservedState), nullable=False),
    Column('names', Series, nullable=False),
    Column('live', JsonText(dict, lenient=True)),
    Column('reason', LONG_TEXT, nullable=False),
    Column('since', Double, nullable=False),
    Column('same_results', Integer, nullable=False),
    Column('observed_at', Double),
    Column('source', Word(ObservationSource), nullable=False),
    Column('due_at', Double, nullable=False, index=True),
    Column('requested_at', Double),
    Column('requested_by', Word(ObservationSource)),
    Column('holder', ID),
    Column('leased_at', Double),
    Column('policy', Word(DriftPolicy), nullable=False),
    Column('repairs', Integer, nullable=False),
    Column('repair_at', Double),
    Column('given_up', Boolean, nullable=False),
    Column('told', Word(ObservedState)),
    **OPTIONS,
)

EVENT = Table(
    'event',
    METADATA,
    Column('sequence', BigInteger().with_variant(Integer, 'sqlite'), primary_key=True, autoincrement=True),
    Column('id', ID, nullable=False, unique=True),
    Column('stack_id', ID, nullable=False),
    Column('action', Word(Action), nullable=False),
    Column('status', Word(Status), nullable=False),
    Column('reason', LONG_TEXT, nullable=False),
    Column('at', Double, nullable=False),
    Column('resource_name', NAME),
    Column('resource_type', NAME),
    Column('physical_id', LONG_TEXT),
    Index('ix_event_stack_id_sequence', 'stack_id', 'sequence'),
    **OPTIONS,
)

SIGNAL = Table(
    'signal',
    METADATA,
    Column('sequence', BigInteger().with_variant(Integer, 'sqlite'), primary_key=True, autoincrement=True),
    Column('id', ID, nullable=False, unique=True),
    Column('stack_id', ID, nullable=False, index=True),
    Column('resource_id', ID, nullable=False),
    Column('at', Double, nullable=False),
    Column('details', JsonText),
    Index('ix_signal_resource_id_sequence', 'resource_id', 'sequence'),
    **OPTIONS,
)

SOFTWARE_CONFIG = Table(
    'software_config',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('project_id', String(64), nullable=False),
    Column('name', NAME, nullable=False),
    Column('group', NAME, nullable=False),
    Column('content', JsonText(dict), nullable=False),
    Column('deployment_id', ID, index=True),
    Column('created_at', Double, nullable=False),
    Index('ix_software_config_project_id_created_at', 'project_id', 'created_at'),
    **OPTIONS,
)

SOFTWARE_DEPLOYMENT = Table(
    'software_deployment',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('project_id', String(64), nullable=False),
    Column('server_id', NAME, nullable=False),
    Column('config_id', ID, index=True),
    Column('input_values', JsonText, nullable=False),
    Column('output_values', JsonText, nullable=False),
    Column('action', NAME, nullable=False),
    Column('status', NAME, nullable=False),
    Column('status_reason', LONG_TEXT, nullable=False),
    Column('stack_user_project_id', String(64), index=True),
    Column('created_at', Double, nullable=False),
    Column('updated_at', Double),
    Index('ix_software_deployment_project_id_server_id', 'project_id', 'server_id'),
    **OPTIONS,
)

SNAPSHOT = Table(
    'snapshot',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False, index=True),
    Column('name', NAME),
    Column('status', Word(Status), nullable=False),
    Column('status_reason', LONG_TEXT, nullable=False),
    Column('created_at', Double, nullable=False),
    Column('content', JsonText(dict), nullable=False),
    Column('deleting', Boolean, nullable=False),
    Index('ix_snapshot_deleting', 'deleting'),
    **OPTIONS,
)

SNAPSHOT_ITEM = Table(
    'snapshot_item',
    METADATA,
    Column('snapshot_id', ID, primary_key=True),
    Column('resource_id', ID, primary_key=True),
    Column('stack_id', ID, nullable=False),
    Column('name', NAME, nullable=False),
    Column('type', NAME, nullable=False),
    Column('physical_id', LONG_TEXT),
    Column('properties', JsonText, nullable=False),
    Column('data', JsonText, nullable=False),
    Column('kept', JsonText, nullable=False),
    Column('attempted_at', Double),  # time of the last attempt to delete it
    **OPTIONS,
)

CREDENTIALS = Table(
    'credentials',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('project_id', String(64), nullable=False),
    Column('user_id', NAME, nullable=False),
    Column('method', Word(Method, 32), nullable=False),
    Column('status', Word(CredentialsStatus), nullable=False),
    Column('content', JsonText(dict, lenient=True), nullable=False),
    Column('stack_id', ID, index=True),
    Column('created_at', Double, nullable=False),
    Column('attempts', Integer, nullable=False),
    Column('reason', LONG_TEXT, nullable=False),
    Column('next_attempt_at', Double),  # no process tries to remove it before that
    Index('ix_credentials_status_again_at', 'status', 'next_attempt_at'),
    **OPTIONS,
)

# Notifications that are not sent yet: see `convergence.db.statements.applying.outbox`.
OUTBOX = Table(
    'outbox',
    METADATA,
    Column('sequence', BigInteger().with_variant(Integer, 'sqlite'), primary_key=True, autoincrement=True),
    Column('event_id', ID, nullable=False),
    Column('kind', Word(NoticeKind), nullable=False),
    Column('stack_id', ID, nullable=False),
    Column('root_id', ID, nullable=False),
    Column('project_id', String(64), nullable=False),
    Column('stack_name', NAME, nullable=False),
    Column('action', Word(Action), nullable=False),
    Column('status', Word(Status), nullable=False),
    Column('reason', LONG_TEXT, nullable=False),
    Column('at', Double, nullable=False),
    Column('created_at', Double, nullable=False),
    Column('updated_at', Double),
    Column('tags', Series, nullable=False),
    Column('description', JsonText(lenient=True)),
    Column('user_id', NAME),
    Column('about', Word(NoticeSubject), nullable=False),
    Column('details', JsonText(lenient=True)),
    Column('fanned_out', Boolean, nullable=False),
    Index('ix_outbox_fanned_sequence', 'fanned_out', 'sequence'),
    **OPTIONS,
)

WEBHOOK = Table(
    'webhook',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('project_id', String(64), nullable=False),
    Column('stack_id', ID, index=True),
    Column('name', NAME, nullable=False),
    Column('content', JsonText(dict, lenient=True), nullable=False),
    Column('host', NAME, nullable=False),
    Column('created_at', Double, nullable=False),
    Column('attempts', Integer, nullable=False),
    Column('next_attempt_at', Double),  # no relay sends to it before that
    Column('delivered_at', Double),
    Column('reason', LONG_TEXT, nullable=False),
    Column('given_up', Integer, nullable=False),
    Index('ix_webhook_project_id_created_at', 'project_id', 'created_at'),
    **OPTIONS,
)

DELIVERY = Table(
    'delivery',
    METADATA,
    Column('sequence', BigInteger().with_variant(Integer, 'sqlite'), primary_key=True, autoincrement=True),
    Column('webhook_id', ID, nullable=False),
    Column('content', JsonText(dict, lenient=True), nullable=False),
    Column('created_at', Double, nullable=False),
    Index('ix_delivery_webhook_id_sequence', 'webhook_id', 'sequence'),
    **OPTIONS,
)

SERVICE = Table(
    'service',
    METADATA,
    Column('id', ID, primary_key=True),
    Column('kind', String(16), nullable=False),
    Column('host', NAME, nullable=False),
    Column('version', String(32), nullable=False),
    Column('started_at', Double, nullable=False),
    Column('beat_at', Double, nullable=False),
    Column('lease_s', Double, nullable=False),
    Column('stopped', Boolean, nullable=False),
    Column('load', Figures, nullable=False),
    Column('beats', Integer, nullable=False, server_default='0'),  # how many there were; only ever grows
    **OPTIONS,
)

DUTY = Table(
    'duty',
    METADATA,
    Column('name', String(64), primary_key=True),
    Column('holder', ID),
    Column('until', Double, nullable=False),
    Column('turns', Integer, nullable=False, server_default='0'),  # how often it was taken; only ever grows
    **OPTIONS,
)
