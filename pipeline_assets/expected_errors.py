"""The errors whose message is written for people: a run that meets one ends in one line.

Belongs here: the list, for the assets and for the command line. Does not belong here: the errors
themselves, which stand beside the code that raises them.

Whatever is not listed is a mistake in the code and keeps its traceback.
"""

from __future__ import annotations

from partitions.processing_version import (
    InvalidSpec,
    MalformedVersionKey,
    SpecDisagrees,
    UnknownVersion,
)
from pipeline_assets.account.canary_facts import UnknownCanary
from pipeline_assets.account.reconciliation.errors import ReportError
from pipeline_assets.backup.errors import BackupError
from pipeline_assets.canary.drop import NoVerdict
from pipeline_assets.canary.make import CanaryUnmakeable
from pipeline_assets.ingest.parsing.pool import ParserUnavailable
from pipeline_assets.ingest.scan import NoSource
from pipeline_assets.known_version import VersionNeverUsed
from pipeline_assets.operating import OperatingValueRefused, UnknownOperatingSetting
from pipeline_assets.pilot.errors import PilotError
from pipeline_assets.prepare.again import RequestChanged
from pipeline_assets.prepare.retries import NotRequeueable, TooFewToRetry
from pipeline_assets.prepare.room import NotEnoughRoom
from pipeline_assets.prompting.template import InvalidPrompt
from pipeline_assets.provider_jobs.fetch import FileChangedOnDisk
from pipeline_assets.provider_jobs.life import JobUnnameable
from pipeline_assets.provider_jobs.operate import JobTaken, NotNow, UnknownJob
from pipeline_assets.provider_jobs.results import NotCollectable
from pipeline_assets.publish.candidates import (
    AcceptanceUnproven,
    CorrectionDiffers,
    StagedValuesDiffer,
)
from pipeline_assets.quality.draw import SampleReasonMissing
from pipeline_assets.replay.model import ReplayRefused
from pipeline_assets.replay.reasons import UnknownReplayReason
from pipeline_assets.selection.errors import SelectionError
from pipeline_assets.versions import UnknownAcceptance, UnknownPrompt
from pipeline_assets.workloads.admission import NotAdmitted
from pipeline_assets.workloads.registry import (
    InvalidWorkload,
    UnknownWorkload,
    WorkloadNamedTwice,
)
from resources.artifacts import ArtifactDamaged, ArtifactMissing, ArtifactStoreFull
from resources.catalogue import CatalogueUnreadable
from resources.clock import ClockUnreachable
from resources.contracts import ContractRefused
from resources.ledger.dump import DumpUnusable
from resources.ledger.errors import LedgerError
from resources.ledger.leases import LeaseHeld, LeaseLost
from resources.ledger.manifests import ManifestChanged
from resources.ledger.source_snapshots import SourceMoved, SourceOfOtherWorkload
from resources.ledger.versions import VersionChanged, VersionNotActive
from resources.providers.port import MalformedLine, ProviderError
from resources.providers.splitting import RecordTooLarge
from resources.settings import SettingsError, UnsupportedPlatform
from resources.sources.declared import InvalidSources, UnknownSource
from resources.sources.port import SourceError

EXPECTED_ERRORS: tuple[type[Exception], ...] = (
    AcceptanceUnproven,
    ArtifactDamaged,
    ArtifactMissing,
    ArtifactStoreFull,
    BackupError,
    CanaryUnmakeable,
    CatalogueUnreadable,
    ClockUnreachable,
    ContractRefused,
    CorrectionDiffers,
    DumpUnusable,
    FileChangedOnDisk,
    InvalidPrompt,
    InvalidSources,
    InvalidSpec,
    InvalidWorkload,
    JobTaken,
    JobUnnameable,
    LeaseHeld,
    LeaseLost,
    LedgerError,
    MalformedVersionKey,
    MalformedLine,
    ManifestChanged,
    NoSource,
    NoVerdict,
    NotAdmitted,
    NotCollectable,
    NotEnoughRoom,
    NotNow,
    NotRequeueable,
    OperatingValueRefused,
    ParserUnavailable,
    PilotError,
    ProviderError,
    RecordTooLarge,
    ReplayRefused,
    ReportError,
    RequestChanged,
    SampleReasonMissing,
    SelectionError,
    SettingsError,
    SourceError,
    SourceMoved,
    SourceOfOtherWorkload,
    SpecDisagrees,
    StagedValuesDiffer,
    TooFewToRetry,
    UnknownCanary,
    UnknownJob,
    UnknownOperatingSetting,
    UnknownAcceptance,
    UnknownPrompt,
    UnknownReplayReason,
    UnknownSource,
    UnknownVersion,
    UnknownWorkload,
    UnsupportedPlatform,
    VersionChanged,
    VersionNeverUsed,
    VersionNotActive,
    WorkloadNamedTwice,
)
