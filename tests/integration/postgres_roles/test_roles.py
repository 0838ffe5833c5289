"""Each role of a PostgreSQL ledger can do its work, and nothing of the others'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psycopg
import pytest
from sqlalchemy import URL

from pipeline_assets.account.outcomes import outcomes
from pipeline_assets.account.search import search
from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.review.decisions import Decision, asked_of, decide
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.engine import open_ledger
from resources.ledger.versions import set_operating
from tests.integration.stages.support import InProcessPool
from tests.provider_emulator.world import World
from tests.support.emulator import RunningEmulator
from tests.support.messy_run import messy_run
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.provider_walk import ProviderWalk
from tests.support.small_shop import KEY, make_documents, settings_for

pytestmark = pytest.mark.postgres
REPOSITORY = Path(__file__).resolve().parents[3]
PASSWORD = "only-of-this-test"
ROLES = ("worker", "reviewer", "operator", "search")


@dataclass(frozen=True)
class Roles:
    """A ledger with its roles, and a user for each."""

    url: URL
    folder: Path
    users: str

    def of(self, role: str) -> str:
        user = self.url.set(username=f"{self.users}_{role}", password=PASSWORD)
        return user.render_as_string(hide_password=False)

    @contextmanager
    def context(self, role: str) -> Iterator[Context]:
        settings = settings_for(self.folder).model_copy(update={"ledger_url": self.of(role)})
        with open_context(settings) as context:
            yield context


@contextmanager
def with_roles(postgres: PostgresServer, folder: Path, users: str) -> Iterator[Roles]:
    """A new ledger, the roles, and a user for each; users are of the whole server."""
    script = (REPOSITORY / "deploy" / "postgres" / "roles.sql").read_text(encoding="utf-8")
    with fresh_database(postgres) as url:
        open_ledger(url.render_as_string(hide_password=False)).close()
        with _connect(url) as connection:
            for _ in range(2):  # running it again changes nothing
                connection.execute(script.encode())
            for role in ROLES:
                connection.execute(
                    f"CREATE ROLE {users}_{role} LOGIN PASSWORD '{PASSWORD}' "
                    f"IN ROLE tallybook_{role}".encode()
                )
        try:
            yield Roles(url, folder, users)
        finally:
            with _connect(url) as connection:
                for role in ROLES:
                    connection.execute(f"DROP OWNED BY {users}_{role}".encode())
                    connection.execute(f"DROP OWNED BY tallybook_{role}".encode())
                    connection.execute(f"DROP ROLE {users}_{role}".encode())


@pytest.fixture(scope="module")
def roles(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    """Return a ledger that the worker has run the pipeline on."""
    folder = tmp_path_factory.mktemp("roles")
    make_documents(folder / "documents")
    with with_roles(postgres, folder, "test") as found:
        with (
            pytest.MonkeyPatch.context() as patch,
            found.context("worker") as context,
            closing(World()) as world,
        ):
            patch.setattr(parsing, "ParserPool", InProcessPool)
            walk = ProviderWalk(world, "openai", KEY, context, {})
            walk.prepare()
            walk.step()
        yield found


@contextmanager
def _connect(url: URL) -> Iterator[psycopg.Connection]:
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        yield connection


def test_the_worker_runs_the_pipeline(roles: Roles) -> None:
    with roles.context("worker") as context:
        states = {row["document_id"]: row["state"] for row in outcomes(context, KEY)}
    assert states == {
        "shop/sander.txt": "published",
        "shop/cleaning.txt": "awaiting_review",
        "shop/empty.txt": "excluded",
    }


def test_a_reader_finds_what_is_published(roles: Roles) -> None:
    with roles.context("search") as context:
        hits = search(context, "KX-40")
    assert [hit.document_id for hit in hits] == ["shop/sander.txt"]


def test_a_reviewer_decides(roles: Roles) -> None:
    with roles.context("worker") as context:
        draw_sample(context, open_version(context, KEY), actor="worker", reason="a look")
    cases: list[tuple[str, Decision]] = [("findings", "accept"), ("quality_sample", "reject")]
    for kind, decision in cases:
        with roles.context("reviewer") as context:
            with context.ledger.read() as connection:
                (review,) = context.ledger.dialect.fetch(
                    connection,
                    "SELECT review_no FROM reviews WHERE kind = ? AND decision IS NULL",
                    {"review_no": pl.Int64},
                    (kind,),
                )["review_no"]
            asked = asked_of([(review, 0)])
            decide(context, asked, decision, reviewer="ada", reason="looked at it")
    with roles.context("search") as context:
        assert search(context, "KX-40") == [], "what was rejected is not shown any more"


@pytest.mark.slow
def test_an_operator_sees_a_provider_through_everything_that_goes_wrong(
    postgres: PostgresServer,
    tmp_path: Path,
    emulator: RunningEmulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Canaries, jobs, retries, late answers, samples, dead letters: nothing of it is refused."""
    emulator.use(monkeypatch)
    with (
        with_roles(postgres, tmp_path, "messy") as found,
        messy_run(emulator, tmp_path / "shop", found.of("operator")) as run,
    ):
        states = {row["state"] for row in outcomes(run.context, run.settings.version)}
    assert {"published", "rejected", "dead_letter", "awaiting_review", "excluded"} <= states


def test_an_operator_changes_settings(roles: Roles) -> None:
    with roles.context("operator") as context:
        version = open_version(context, KEY)
        cause = context.cause("a test", "test")
        set_operating(context.ledger, version.version_no, "stuck_hours", "48", cause)


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        *(
            (role, statement)
            for role in ("worker", "reviewer", "operator", "search")
            for statement in (
                "UPDATE moves SET reason = 'another'",
                "DELETE FROM moves",
                "DELETE FROM move_members",
                "UPDATE dispositions SET disposition = 'succeeded'",
                "DELETE FROM dispositions",
                "UPDATE results SET line = 1",
                "DELETE FROM deliveries",
                "UPDATE archive_entries SET content = '{}'",
                "DELETE FROM archive_entries",
                "UPDATE review_acts SET who = 'somebody'",
                "UPDATE report_closings SET closed_by = 'somebody'",
                "DELETE FROM reports",
                "UPDATE audits SET findings = 0",
                "UPDATE ledger_info SET value = 'x'",
                "INSERT INTO erasures (document_no, reason, actor, begun_at, purged) "
                "VALUES (1, 'x', 'x', 'x', '{}')",
                "DROP TABLE moves",
                "ALTER TABLE moves ADD COLUMN more TEXT",
                "CREATE TABLE mine (n INTEGER)",
                "TRUNCATE accesses",
            )
        ),
        ("worker", "INSERT INTO approvals SELECT * FROM approvals"),
        ("worker", "INSERT INTO operating_settings SELECT * FROM operating_settings"),
        ("worker", "INSERT INTO report_closings SELECT * FROM report_closings"),
        ("worker", "UPDATE reviews SET corrected_content = '{}'"),
        ("reviewer", "INSERT INTO batches SELECT * FROM batches"),
        ("reviewer", "UPDATE batches SET state = 'completed'"),
        ("reviewer", "INSERT INTO judgements SELECT * FROM judgements"),
        ("reviewer", "INSERT INTO archive_entries SELECT * FROM archive_entries"),
        ("search", "SELECT * FROM reviews"),
        ("search", "SELECT * FROM parses"),
        ("search", "SELECT * FROM accesses"),
        ("search", "INSERT INTO accesses SELECT * FROM accesses"),
    ],
)
def test_what_a_role_may_not(roles: Roles, role: str, statement: str) -> None:
    user = roles.url.set(username=f"test_{role}", password=PASSWORD)
    with _connect(user) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement.encode())
