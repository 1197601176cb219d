"""The first tables.

Revision: 0001_first_tables. Follows: nothing. Frozen with the first release: each later change is a new migration.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0001_first_tables'
down_revision = None
branch_labels = None
depends_on = None

LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    """Forwards."""
    op.create_table(
        'duty',
        sa.Column('name', sa.String(length=64), nullable=False),
        sa.Column('holder', sa.String(length=36), nullable=True),
        sa.Column('until', sa.Double(), nullable=False),
        sa.Column('turns', sa.Integer(), server_default='0', nullable=False),
        sa.PrimaryKeyConstraint('name', name=op.f('pk_duty')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_table(
        'event',
        sa.Column('sequence', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('resource_name', sa.String(length=255), nullable=True),
        sa.Column('resource_type', sa.String(length=255), nullable=True),
        sa.Column('physical_id', LONG_TEXT, nullable=True),
        sa.PrimaryKeyConstraint('sequence', name=op.f('pk_event')),
        sa.UniqueConstraint('id', name=op.f('uq_event_id')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_event_stack_id_sequence', 'event', ['stack_id', 'sequence'], unique=False)
    op.create_table(
        'tree',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('resource_count', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_tree')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_table(
        'project',
        sa.Column('id', sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_project')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_table(
        'resource',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('type', sa.String(length=255), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('status_reason', LONG_TEXT, nullable=False),
        sa.Column('physical_id', LONG_TEXT, nullable=True),
        sa.Column('definition', LONG_TEXT, nullable=True),
        sa.Column('properties', LONG_TEXT, nullable=False),
        sa.Column('pending', LONG_TEXT, nullable=True),
        sa.Column('data', LONG_TEXT, nullable=False),
        sa.Column('output', LONG_TEXT, nullable=True),
        sa.Column('digest', sa.String(length=64), nullable=True),
        sa.Column('requires', LONG_TEXT, nullable=False),
        sa.Column('replaces', sa.String(length=36), nullable=True),
        sa.Column('replaced_by', sa.String(length=36), nullable=True),
        sa.Column('template_id', sa.String(length=36), nullable=True),
        sa.Column('owner', sa.String(length=36), nullable=True),
        sa.Column('fence', sa.Integer(), nullable=False),
        sa.Column('token', sa.String(length=36), nullable=True),
        sa.Column('progress', LONG_TEXT, nullable=True),
        sa.Column('wake_at', sa.Double(), nullable=True),
        sa.Column('updated_at', sa.Double(), nullable=True),
        sa.Column('began_at', sa.Double(), nullable=True),
        sa.Column('search_until', sa.Double(), nullable=True),
        sa.Column('traversal_id', sa.String(length=36), nullable=True),
        sa.Column('retry', LONG_TEXT, nullable=True),
        sa.Column('deadline', sa.Double(), nullable=True),
        sa.Column('crash_count', sa.Integer(), nullable=False),
        sa.Column('event_count', sa.Integer(), nullable=False),
        sa.Column('polled_event_count', sa.Integer(), nullable=False),
        sa.Column('hook', sa.String(length=16)),
        sa.Column('hook_traversal_id', sa.String(length=36)),
        sa.Column('cleared', sa.String(length=16)),
        sa.Column('cleared_traversal_id', sa.String(length=36)),
        sa.Column('nothing_made', sa.Boolean(), nullable=False),
        sa.Column('clearing', sa.Boolean(), nullable=False),
        sa.Column('repairable', sa.Boolean(), nullable=False),
        sa.Column('accepted', LONG_TEXT, nullable=True),
        sa.Column('handover', sa.String(length=16)),
        sa.Column('revocation', sa.String(length=64), nullable=False),
        sa.Column('lock_count', sa.Integer(), server_default='0', nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_resource')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_resource_owner', 'resource', ['owner'], unique=False)
    op.create_index(
        'ix_resource_physical_id',
        'resource',
        ['physical_id'],
        unique=False,
        postgresql_using='hash',
        mysql_length=64,
        mariadb_length=64,
    )
    op.create_index(op.f('ix_resource_stack_id'), 'resource', ['stack_id'], unique=False)
    op.create_index('ix_resource_status_owner', 'resource', ['status', 'owner'], unique=False)
    op.create_table(
        'service',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('kind', sa.String(length=16), nullable=False),
        sa.Column('host', sa.String(length=255), nullable=False),
        sa.Column('version', sa.String(length=32), nullable=False),
        sa.Column('started_at', sa.Double(), nullable=False),
        sa.Column('beat_at', sa.Double(), nullable=False),
        sa.Column('lease_s', sa.Double(), nullable=False),
        sa.Column('stopped', sa.Boolean(), nullable=False),
        sa.Column('load', LONG_TEXT, nullable=False),
        sa.Column('beats', sa.Integer(), server_default='0', nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_service')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_table(
        'stack',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('live_name', sa.String(length=255), nullable=True),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('status_reason', LONG_TEXT, nullable=False),
        sa.Column('template_id', sa.String(length=36), nullable=True),
        sa.Column('last_good_template_id', sa.String(length=36), nullable=True),
        sa.Column('traversal_id', sa.String(length=36), nullable=True),
        sa.Column('timeout_mins', sa.Integer(), nullable=False),
        sa.Column('disable_rollback', sa.Boolean(), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=True),
        sa.Column('deleted_at', sa.Double(), nullable=True),
        sa.Column('tags', LONG_TEXT, nullable=False),
        sa.Column('request_key', sa.String(length=255), nullable=True),
        sa.Column('request_digest', sa.String(length=64), nullable=True),
        sa.Column('parent_id', sa.String(length=36), nullable=True),
        sa.Column('parent_resource_id', sa.String(length=36), nullable=True),
        sa.Column('root_id', sa.String(length=36), nullable=True),
        sa.Column('nested_depth', sa.Integer(), nullable=False),
        sa.Column('resource_count', sa.Integer(), nullable=False),
        sa.Column('type_rules', LONG_TEXT, nullable=True),
        sa.Column('credentials_id', sa.String(length=36), nullable=True),
        sa.Column('previous_good_template_id', sa.String(length=36), nullable=True),
        sa.Column('drift_policy', sa.String(16), nullable=False),
        sa.Column('policy_propagated', sa.Boolean(), nullable=False),
        sa.Column('lock_count', sa.Integer(), server_default='0', nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_stack')),
        sa.UniqueConstraint('project_id', 'live_name', name=op.f('uq_stack_project_id_live_name')),
        sa.UniqueConstraint('project_id', 'request_key', name=op.f('uq_stack_project_id_request_key')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index(op.f('ix_stack_credentials_id'), 'stack', ['credentials_id'], unique=False)
    op.create_index('ix_stack_deleted_at', 'stack', ['deleted_at'], unique=False)
    op.create_index(op.f('ix_stack_parent_id'), 'stack', ['parent_id'], unique=False)
    op.create_index(op.f('ix_stack_parent_resource_id'), 'stack', ['parent_resource_id'], unique=False)
    op.create_index('ix_stack_project_id_created_at', 'stack', ['project_id', 'created_at'], unique=False)
    op.create_index(op.f('ix_stack_root_id'), 'stack', ['root_id'], unique=False)
    op.create_table(
        'sync_point',
        sa.Column('traversal_id', sa.String(length=36), nullable=False),
        sa.Column('number', sa.Integer(), autoincrement=False, nullable=False),
        sa.Column('phase', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=True),
        sa.Column('resource_id', sa.String(length=36), nullable=True),
        sa.Column('definition', LONG_TEXT, nullable=True),
        sa.Column('asked', LONG_TEXT, nullable=False),
        sa.Column('waiting', sa.Integer(), nullable=False),
        sa.Column('requires', LONG_TEXT, nullable=False),
        sa.Column('required_by', LONG_TEXT, nullable=False),
        sa.Column('output', LONG_TEXT, nullable=True),
        sa.Column('next_in_backlog', sa.Integer(), nullable=True),
        sa.Column('notified_at', sa.Double(), nullable=True),
        sa.Column('finished_at', sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint('traversal_id', 'number', name=op.f('pk_sync_point')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index(
        'ix_sync_point_status_notified_at',
        'sync_point',
        ['status', 'notified_at'],
        unique=False,
        postgresql_where=sa.text("status = 'READY'"),
    )
    op.create_index(
        'ix_sync_point_resource_id_traversal_id', 'sync_point', ['resource_id', 'traversal_id'], unique=False
    )
    op.create_table(
        'template',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('summary', LONG_TEXT, nullable=False),
        sa.Column('equivalent_template_id', sa.String(length=36), nullable=True),
        sa.Column('changed_names', LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_template')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index(op.f('ix_template_stack_id'), 'template', ['stack_id'], unique=False)
    op.create_table(
        'traversal',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('template_id', sa.String(length=36), nullable=True),
        sa.Column('rollback_on_failure', sa.Boolean(), nullable=False),
        sa.Column('started_at', sa.Double(), nullable=False),
        sa.Column('deadline', sa.Double(), nullable=False),
        sa.Column('node_count', sa.Integer(), nullable=False),
        sa.Column('complete_number', sa.Integer(), nullable=False),
        sa.Column('unchanged', sa.Integer(), nullable=False),
        sa.Column('finished_at', sa.Double(), nullable=True),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('failed_phase', sa.String(16), nullable=True),
        sa.Column('request_id', sa.String(length=64), nullable=False),
        sa.Column('cancels', sa.Boolean(), nullable=False),
        sa.Column('failed_name', sa.String(length=255), nullable=True),
        sa.Column('stalled_at', sa.Double(), nullable=True),
        sa.Column('retains', sa.Boolean(), nullable=False),
        sa.Column('cause', LONG_TEXT, nullable=False),
        sa.Column('left_rows', LONG_TEXT, nullable=False),
        sa.Column('for_parent', sa.Boolean(), nullable=False),
        sa.Column('in_service_at', sa.Double(), nullable=True),
        sa.Column('observes', sa.Boolean(), nullable=False),
        sa.Column('scaling', LONG_TEXT, nullable=True),
        sa.Column('repair_attempt', sa.Integer(), nullable=False),
        sa.Column('swept', sa.Boolean(), nullable=False),
        sa.Column('progress_notified_at', sa.Double(), nullable=True),
        sa.Column('observations_scheduled', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_traversal')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_traversal_stack_id_started_at', 'traversal', ['stack_id', 'started_at'], unique=False)
    op.create_index('ix_traversal_swept_status', 'traversal', ['swept', 'status'], unique=False)
    op.create_index('ix_traversal_enrolled', 'traversal', ['observations_scheduled'], unique=False)
    op.create_index('ix_traversal_repair_attempt_status', 'traversal', ['repair_attempt', 'status'], unique=False)
    op.create_table(
        'observation',
        sa.Column('resource_id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('fence', sa.Integer(), nullable=False),
        sa.Column('found', sa.String(16), nullable=False),
        sa.Column('names', LONG_TEXT, nullable=False),
        sa.Column('live', LONG_TEXT, nullable=True),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('since', sa.Double(), nullable=False),
        sa.Column('same_results', sa.Integer(), nullable=False),
        sa.Column('observed_at', sa.Double(), nullable=True),
        sa.Column('source', sa.String(16), nullable=False),
        sa.Column('due_at', sa.Double(), nullable=False),
        sa.Column('requested_at', sa.Double(), nullable=True),
        sa.Column('requested_by', sa.String(16), nullable=True),
        sa.Column('holder', sa.String(length=36), nullable=True),
        sa.Column('leased_at', sa.Double(), nullable=True),
        sa.Column('policy', sa.String(16), nullable=False),
        sa.Column('repairs', sa.Integer(), nullable=False),
        sa.Column('repair_at', sa.Double(), nullable=True),
        sa.Column('given_up', sa.Boolean(), nullable=False),
        sa.Column('told', sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint('resource_id', name=op.f('pk_observation')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index(op.f('ix_observation_due_at'), 'observation', ['due_at'], unique=False)
    op.create_index(op.f('ix_observation_stack_id'), 'observation', ['stack_id'], unique=False)

    op.create_table(
        'signal',
        sa.Column('sequence', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('resource_id', sa.String(length=36), nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('details', LONG_TEXT, nullable=True),
        sa.PrimaryKeyConstraint('sequence', name=op.f('pk_signal')),
        sa.UniqueConstraint('id', name=op.f('uq_signal_id')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_signal_resource_id_sequence', 'signal', ['resource_id', 'sequence'], unique=False)
    op.create_index('ix_signal_stack_id', 'signal', ['stack_id'], unique=False)
    op.create_table(
        'software_config',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('group', sa.String(length=255), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('deployment_id', sa.String(length=36), nullable=True),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_software_config')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index(
        'ix_software_config_project_id_created_at', 'software_config', ['project_id', 'created_at'], unique=False
    )
    op.create_index('ix_software_config_deployment_id', 'software_config', ['deployment_id'], unique=False)
    op.create_table(
        'software_deployment',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('server_id', sa.String(length=255), nullable=False),
        sa.Column('config_id', sa.String(length=36), nullable=True),
        sa.Column('input_values', LONG_TEXT, nullable=False),
        sa.Column('output_values', LONG_TEXT, nullable=False),
        sa.Column('action', sa.String(length=255), nullable=False),
        sa.Column('status', sa.String(length=255), nullable=False),
        sa.Column('status_reason', LONG_TEXT, nullable=False),
        sa.Column('stack_user_project_id', sa.String(length=64), nullable=True),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_software_deployment')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_software_deployment_config_id', 'software_deployment', ['config_id'], unique=False)
    op.create_index(
        'ix_software_deployment_stack_user_project_id', 'software_deployment', ['stack_user_project_id'], unique=False
    )
    op.create_index(
        'ix_software_deployment_project_id_server_id', 'software_deployment', ['project_id', 'server_id'], unique=False
    )
    op.create_table(
        'snapshot',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=True),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('status_reason', LONG_TEXT, nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('deleting', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_snapshot')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_snapshot_stack_id', 'snapshot', ['stack_id'], unique=False)
    op.create_index('ix_snapshot_deleting', 'snapshot', ['deleting'], unique=False)
    op.create_table(
        'snapshot_item',
        sa.Column('snapshot_id', sa.String(length=36), nullable=False),
        sa.Column('resource_id', sa.String(length=36), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('type', sa.String(length=255), nullable=False),
        sa.Column('physical_id', LONG_TEXT, nullable=True),
        sa.Column('properties', LONG_TEXT, nullable=False),
        sa.Column('data', LONG_TEXT, nullable=False),
        sa.Column('kept', LONG_TEXT, nullable=False),
        sa.Column('attempted_at', sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint('snapshot_id', 'resource_id', name=op.f('pk_snapshot_item')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_table(
        'outbox',
        sa.Column('sequence', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
        sa.Column('event_id', sa.String(length=36), nullable=False),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=False),
        sa.Column('root_id', sa.String(length=36), nullable=False),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('stack_name', sa.String(length=255), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=True),
        sa.Column('tags', LONG_TEXT, nullable=False),
        sa.Column('description', LONG_TEXT, nullable=True),
        sa.Column('user_id', sa.String(length=255), nullable=True),
        sa.Column('about', sa.String(16), nullable=False),
        sa.Column('details', LONG_TEXT, nullable=True),
        sa.Column('fanned_out', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('sequence', name=op.f('pk_outbox')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_outbox_fanned_sequence', 'outbox', ['fanned_out', 'sequence'], unique=False)
    op.create_table(
        'webhook',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=True),
        sa.Column('name', sa.String(length=255), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('host', sa.String(length=255), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('next_attempt_at', sa.Double(), nullable=True),
        sa.Column('delivered_at', sa.Double(), nullable=True),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('given_up', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_webhook_project_id_created_at', 'webhook', ['project_id', 'created_at'], unique=False)
    op.create_index(op.f('ix_webhook_stack_id'), 'webhook', ['stack_id'], unique=False)
    op.create_table(
        'delivery',
        sa.Column('sequence', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
        sa.Column('webhook_id', sa.String(length=36), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint('sequence', name=op.f('pk_delivery')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_delivery_webhook_id_sequence', 'delivery', ['webhook_id', 'sequence'], unique=False)
    op.create_table(
        'credentials',
        sa.Column('id', sa.String(length=36), nullable=False),
        sa.Column('project_id', sa.String(length=64), nullable=False),
        sa.Column('user_id', sa.String(length=255), nullable=False),
        sa.Column('method', sa.String(32), nullable=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('content', LONG_TEXT, nullable=False),
        sa.Column('stack_id', sa.String(length=36), nullable=True),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('reason', LONG_TEXT, nullable=False),
        sa.Column('next_attempt_at', sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_credentials')),
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
        mysql_engine='InnoDB',
    )
    op.create_index('ix_credentials_status_again_at', 'credentials', ['status', 'next_attempt_at'], unique=False)
    op.create_index(op.f('ix_credentials_stack_id'), 'credentials', ['stack_id'], unique=False)


def downgrade() -> None:
    """Back."""
    op.drop_index(op.f('ix_credentials_stack_id'), table_name='credentials')
    op.drop_index('ix_credentials_status_again_at', table_name='credentials')
    op.drop_table('credentials')
    op.drop_index('ix_delivery_webhook_id_sequence', table_name='delivery')
    op.drop_table('delivery')
    op.drop_index(op.f('ix_webhook_stack_id'), table_name='webhook')
    op.drop_index('ix_webhook_project_id_created_at', table_name='webhook')
    op.drop_table('webhook')
    op.drop_index('ix_outbox_fanned_sequence', table_name='outbox')
    op.drop_table('outbox')
    op.drop_table('snapshot_item')
    op.drop_index('ix_snapshot_deleting', table_name='snapshot')
    op.drop_index('ix_snapshot_stack_id', table_name='snapshot')
    op.drop_table('snapshot')
    op.drop_table('software_deployment')
    op.drop_table('software_config')
    op.drop_index('ix_signal_stack_id', table_name='signal')
    op.drop_index('ix_signal_resource_id_sequence', table_name='signal')
    op.drop_table('signal')
    op.drop_index(op.f('ix_observation_stack_id'), table_name='observation')
    op.drop_index(op.f('ix_observation_due_at'), table_name='observation')
    op.drop_table('observation')
    op.drop_index('ix_traversal_repair_attempt_status', table_name='traversal')
    op.drop_index('ix_traversal_enrolled', table_name='traversal')
    op.drop_index('ix_traversal_swept_status', table_name='traversal')
    op.drop_index('ix_traversal_stack_id_started_at', table_name='traversal')
    op.drop_table('traversal')
    op.drop_index(op.f('ix_template_stack_id'), table_name='template')
    op.drop_table('template')
    op.drop_index('ix_sync_point_resource_id_traversal_id', table_name='sync_point')
    op.drop_index('ix_sync_point_status_notified_at', table_name='sync_point')
    op.drop_table('sync_point')
    op.drop_index('ix_stack_project_id_created_at', table_name='stack')
    op.drop_index('ix_stack_deleted_at', table_name='stack')
    op.drop_index(op.f('ix_stack_credentials_id'), table_name='stack')
    op.drop_table('stack')
    op.drop_table('service')
    op.drop_index('ix_resource_status_owner', table_name='resource')
    op.drop_index(op.f('ix_resource_stack_id'), table_name='resource')
    op.drop_index('ix_resource_physical_id', table_name='resource')
    op.drop_index('ix_resource_owner', table_name='resource')
    op.drop_table('resource')
    op.drop_table('project')
    op.drop_table('tree')
    op.drop_index('ix_event_stack_id_sequence', table_name='event')
    op.drop_table('event')
    op.drop_table('duty')
