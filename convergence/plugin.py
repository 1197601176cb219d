"""The one module that an author of resource types imports from.

It offers the base class, answers, errors, declarations of properties and attributes, constraints, and the manifest.
`Writing a resource type <../plugins.rst>`__ explains them. The modules that define them keep their paths.
"""

from convergence.core.model import Action, Change, Json, RetryPolicy
from convergence.resources.adapter import adapt
from convergence.resources.attributes import AnyAttribute, attr
from convergence.resources.constraints import (
    AllowedPattern,
    AllowedValues,
    CustomConstraint,
    Length,
    Modulo,
    Range,
    custom,
)
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    ForeignObject,
    FutureValue,
    InProgress,
    Item,
    NotAsWanted,
    ObjectNotFound,
    Observed,
    OutcomeUnknown,
    Outline,
    PluginFailure,
    Recorder,
    ReplacementNeeded,
    ResourceType,
    Signal,
    Signals,
    Tell,
    TransientFailure,
    Watcher,
)
from convergence.resources.manifest import Manifest, entry_of
from convergence.resources.schema import or_null, prop, remaining, secret
from convergence.resources.support import SupportStatus, since
from convergence.resources.translation import Append, Drop, Rename, Rewrite
from convergence.signing import KEY, Grant

__all__ = [
    'KEY',
    'Action',
    'AllowedPattern',
    'AllowedValues',
    'Answer',
    'AnyAttribute',
    'Append',
    'Call',
    'Change',
    'CustomConstraint',
    'Done',
    'Drop',
    'FinalFailure',
    'ForeignObject',
    'FutureValue',
    'Grant',
    'InProgress',
    'Item',
    'Json',
    'Length',
    'Manifest',
    'Modulo',
    'NotAsWanted',
    'ObjectNotFound',
    'Observed',
    'OutcomeUnknown',
    'Outline',
    'PluginFailure',
    'Range',
    'Recorder',
    'Rename',
    'ReplacementNeeded',
    'ResourceType',
    'RetryPolicy',
    'Rewrite',
    'Signal',
    'Signals',
    'SupportStatus',
    'Tell',
    'TransientFailure',
    'Watcher',
    'adapt',
    'attr',
    'custom',
    'entry_of',
    'or_null',
    'prop',
    'remaining',
    'secret',
    'since',
]
