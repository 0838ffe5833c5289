"""Errors as one line for a person, and the log of those that nobody expected.

Belongs here: which errors are told by their own message, and where a traceback goes. Does not
belong here: the messages, which stand beside the code that raises them.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from datetime import datetime
from pathlib import Path

from pipeline_assets.account.plain_text import one_line
from pipeline_assets.cli.options import state_in_use

DEBUG_VARIABLE = "TALLYBOOK_DEBUG"
# What a place on disk may refuse; each of them says which place.
_OF_A_PLACE = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOENT,
        errno.EEXIST,
        errno.ENAMETOOLONG,
    }
)


def print_error(message: str) -> None:
    """One line on standard error that begins with the program's name."""
    sys.stderr.write(f"tallybook: {one_line(' '.join(message.split()))}\n")


def tell(error: Exception) -> None:
    """Say what went wrong in one line; what nobody expected leaves a traceback in the logs."""
    message = known_message(error)
    if message is None:
        message = f"unexpected {type(error).__name__}{_logged(error)}"
    print_error(message)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)


def known_message(error: Exception) -> str | None:
    """The message of an error that is meant for people; None for a mistake in the code."""
    if isinstance(error, _told_by_themselves()):
        return str(error)
    if isinstance(error, OSError):
        return _of_the_system(error)
    return None


def _told_by_themselves() -> tuple[type[Exception], ...]:
    from pipeline_assets.account.documents import AmbiguousDocument, UnknownDocument
    from pipeline_assets.account.field_provenance_model import AnswerUnknown, NoSuchEntry
    from pipeline_assets.account.known_workload import SeveralWorkloads, WorkloadNeverUsed
    from pipeline_assets.account.moments import UnreadableMoment
    from pipeline_assets.account.published import (
        DocumentErased,
        NoSuchPage,
        NoText,
        NotPublished,
        NotPublishedThen,
    )
    from pipeline_assets.account.search import NothingToSearchFor
    from pipeline_assets.account.whole_file import FileRefused
    from pipeline_assets.alerting.channels import NoChannel
    from pipeline_assets.approval.errors import ApprovalError
    from pipeline_assets.audit.proof import (
        NoProof,
        NoReportToProve,
        NotInReport,
        ReportNotWhole,
    )
    from pipeline_assets.audit.run import NoSuchDigest, SampleRefused
    from pipeline_assets.automation.switches import NoSuchSwitch
    from pipeline_assets.canary.proof_errors import ProofDamaged, ProofNotConfirmed, ProofStuck
    from pipeline_assets.cli.alerts import NoOpenAlert, NoReason
    from pipeline_assets.cli.metrics_server import CannotListen
    from pipeline_assets.cli.operating import NotInState
    from pipeline_assets.cli.options import NothingHere
    from pipeline_assets.cli.outlets import NothingToRetry
    from pipeline_assets.cli.replay import DocumentsUnreadable
    from pipeline_assets.cli.run import RunFailed
    from pipeline_assets.cli.run_lock import StateInUse
    from pipeline_assets.cli.source_events import EventsUnnamed
    from pipeline_assets.compare.compare import OtherWorkload, SameVersion, UnclearCondition
    from pipeline_assets.erasure.plan import ErasureRefused, NotConfirmed
    from pipeline_assets.expected_errors import EXPECTED_ERRORS
    from pipeline_assets.outlets.http import NoOutlet
    from pipeline_assets.publish.rollback import NoSuchArchiveVersion, NotShowable
    from pipeline_assets.recovery import dead_letter_choice, dead_letters
    from pipeline_assets.retention.policy import UnknownWhat
    from pipeline_assets.review.errors import ReviewError
    from pipeline_assets.tracing import one_record as one_trace
    from resources.ledger.moves import MoveRefused, StateChanged
    from resources.ledger.source_events import EventsNotOpen

    # Dagster takes a second to import; who never imported it cannot have met its error.
    dagster_instance = sys.modules.get("pipeline_assets.cli.dagster_instance")
    return (
        *EXPECTED_ERRORS,
        *(() if dagster_instance is None else (dagster_instance.InstanceUnusable,)),
        dead_letter_choice.AmbiguousDeadLetter,
        dead_letter_choice.NothingSelected,
        dead_letter_choice.SelectionUnclear,
        dead_letter_choice.UnknownDeadLetter,
        dead_letters.OwnerRefused,
        dead_letters.ReasonMissing,
        one_trace.NoRecordYet,
        one_trace.NotInFile,
        AmbiguousDocument,
        AnswerUnknown,
        ApprovalError,
        CannotListen,
        DocumentErased,
        DocumentsUnreadable,
        ErasureRefused,
        EventsNotOpen,
        EventsUnnamed,
        FileRefused,
        MoveRefused,
        NoChannel,
        NoOpenAlert,
        NoOutlet,
        NoProof,
        NoReason,
        NoReportToProve,
        NoSuchArchiveVersion,
        NoSuchEntry,
        NoSuchPage,
        NoSuchSwitch,
        NoText,
        NotConfirmed,
        NotInReport,
        NotPublished,
        NotPublishedThen,
        NotShowable,
        NothingHere,
        NothingToRetry,
        NothingToSearchFor,
        OtherWorkload,
        NotInState,
        ReportNotWhole,
        ProofDamaged,
        ProofNotConfirmed,
        ProofStuck,
        ReviewError,
        RunFailed,
        SameVersion,
        NoSuchDigest,
        SampleRefused,
        SeveralWorkloads,
        StateChanged,
        StateInUse,
        UnclearCondition,
        UnknownDocument,
        UnknownWhat,
        UnreadableMoment,
        WorkloadNeverUsed,
    )


def _of_the_system(error: OSError) -> str | None:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        # Not the error's own file name: of a copy it names the file that was read.
        state = state_in_use.get()
        place = "" if state is None else f" of {state}"
        return (
            f"no space is left on the disk{place}. What was committed is intact: free some space "
            "and run the same command again."
        )
    if error.errno in _OF_A_PLACE and error.filename:
        return f"{error.filename}: {error.strerror}. Correct the path or its permissions."
    return None


def _logged(error: Exception) -> str:
    """Where the traceback was put, as the end of a sentence."""
    hint = f"set {DEBUG_VARIABLE}=1 to see where"
    state = state_in_use.get()
    if state is None or not state.is_dir():
        return f"; {hint}"
    try:
        return f"; where it happened is in {_write_log(state, error)} ({hint} at once)"
    except OSError:
        return f"; {hint}"


def _write_log(state: Path, error: Exception) -> Path:
    logs = state / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    now = datetime.now().astimezone()
    file = logs / f"error-{now:%Y%m%dT%H%M%S}-{os.getpid()}.log"
    # Names and places only: the messages of foreign libraries may quote a document.
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}\n")
        lines += traceback.format_tb(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    file.write_text("".join(lines), encoding="utf-8")
    file.chmod(0o600)
    return file
