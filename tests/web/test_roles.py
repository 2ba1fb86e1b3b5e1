"""Names, roles and invitations; every change is refused to the wrong roles."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute
from support import live, pages, sealed_exam
from support.live import Answer, Client

from exampp import Collection
from exampp.errors import InputError
from exampp.web.access import POSTS, Access, needed_action
from exampp.web.app import import_pages
from exampp.web.page_request import PageRequest
from exampp.web.people import ROLES, People, Person, Role, may, session_of


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = live.graded(tmp_path_factory.mktemp("exam"))
    live.decide_some(made)
    return made


@pytest.fixture(scope="module")
def group(path: Path) -> Iterator[dict[Role, Client]]:
    """A browser of each role, at one server."""
    with live.serving(path, assessors=()) as served:
        people = served.access.people
        for role in ROLES:
            people.add(f"an {role}", role)
        yield {role: Client(served).enter(f"an {role}") for role in ROLES}


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("ann", "Ann"),
        ("ann", "ANN "),
        ("Zoë", "zoe\N{COMBINING DIAERESIS}"),
        ("ann", "A\N{ZERO WIDTH SPACE}nn\N{RIGHT-TO-LEFT MARK}"),
        ("ann", "\N{FULLWIDTH LATIN SMALL LETTER A}nn"),
        ("Straße", "STRASSE"),
        ("ann lee", "Ann  \t Lee"),
    ],
)
def test_two_names_that_look_alike_are_refused(first: str, again: str) -> None:
    people = People()
    people.add(first, "assessor")
    with pytest.raises(InputError, match=r"name|one person"):
        people.add(again, "assessor")


@pytest.mark.parametrize("name", ["", " ", "\N{ZERO WIDTH SPACE}", "\t\n"])
def test_a_person_needs_a_name(name: str) -> None:
    with pytest.raises(InputError, match="blank"):
        People().add(name, "assessor")


def test_decisions_of_one_person_in_two_spellings_are_of_one_person(path: Path) -> None:
    with Collection(path) as collection:
        grades = collection.grades()
        item = grades.gradebook.queries[0].item_ids[0]
        for author in ("Zoë  Lee", " Zoe\N{COMBINING DIAERESIS} Lee\N{ZERO WIDTH SPACE}"):
            made = grades.decisions.decide("q1", item, "p2", 3, author=author)
            assert made.author == "Zoë Lee"


# ---- invitations ---------------------------------------------------------------------------------


def test_an_invitation_lasts_until_it_is_revoked(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    token = People(path).invite(" ann ", "editor")
    for _ in range(2):  # also after a restart
        with live.serving(path, assessors=()) as served:
            # the file is read by a server that was started before and after
            served.access.people.path = People(path).path
            client = Client(served)
            assert client.get("/", token=token).status == 303
            assert "<bdi>ann</bdi>" in client.get("/queries").text
    with live.serving(path, assessors=()) as served:
        served.access.people.path = People(path).path
        client = Client(served)
        client.get("/", token=token)
        assert client.get("/queries").status == 200
        assert People(path).revoke("ANN").name == "ann"
        assert client.get("/queries").status == 401
        assert Client(served).get("/", token=token).status == 403


def test_a_new_invitation_ends_the_old_one(tmp_path: Path) -> None:
    people = People(tmp_path / "my.exam")
    first = people.invite("ann")
    second = people.invite("ann", "owner")
    assert people.signed_in(session_of(first)) is None
    person = people.signed_in(session_of(second))
    assert person is not None
    assert (person.name, person.role) == ("ann", "owner")
    assert people.table().rows[0][:2] == ("ann", "owner")
    with pytest.raises(InputError, match="'Ann' and 'ann'"):
        people.invite("Ann")
    with pytest.raises(InputError, match="'bob' has no invitation"):
        people.revoke("bob")


def test_the_file_of_invitations_lets_nobody_in(tmp_path: Path) -> None:
    people = People(tmp_path / "my.exam")
    token = people.invite("ann", "owner")
    assert people.path is not None
    assert stat.S_IMODE(people.path.stat().st_mode) == 0o600
    text = people.path.read_text()
    assert token not in text
    assert session_of(token) not in text
    (entry,) = json.loads(text)["people"]
    for secret in (entry["session"], entry["name"]):
        assert people.signed_in(secret) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"people": 3}',
        '{"people": [{"name": "ann", "role": "root", "session": "x"}]}',
        '{"people": [{"name": "ann", "role": "owner", "session": 5}]}',
        "\xff",
    ],
)
def test_a_damaged_file_of_invitations_admits_nobody_and_is_not_replaced(
    tmp_path: Path, text: str
) -> None:
    people = People(tmp_path / "my.exam")
    token = people.invite("ann", "owner")
    assert people.path is not None
    people.path.write_bytes(text.encode("latin-1"))
    assert people.signed_in(session_of(token)) is None
    with pytest.raises(InputError, match="not a list of invitations"):
        people.invite("bob")
    assert people.path.read_bytes() == text.encode("latin-1")


def test_a_link_of_somebody_else_does_not_replace_a_login(group: dict[Role, Client]) -> None:
    ann, other = group["assessor"], group["owner"]
    people = ann.served.access.people
    token = next(token for token, name in people.tokens.items() if name == "an owner")
    kept = dict(ann.cookies)
    answer = ann.get("/", token=token)
    assert answer.status == 409
    assert "You are signed in as <bdi>an assessor</bdi>" in answer.text
    assert ann.cookies == kept
    assert "<bdi>an owner</bdi>" in other.get("/queries").text
    # after signing out the link may be used
    fresh = Client(ann.served, dict(ann.cookies))
    fresh.post("/sign-out")
    fresh.cookies = {name: value for name, value in fresh.cookies.items() if value != '""'}
    assert fresh.get("/queries").status == 401
    assert fresh.get("/", token=token).status == 303


def test_an_owner_invites_and_revokes_on_the_page(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with live.serving(path) as served:
        served.access.people.path = People(path).path
        ada, form = Client(served).enter(), {"name": "Bob <b>", "role": "editor"}
        page = pages.read(ada.post("/people/invite", form).text)
        address = page.by_id("invitation").attributes["value"]
        assert address.startswith(f"http://{ada.host}/?token=")
        bob = Client(served)
        assert bob.get("/", token=address.partition("=")[2]).status == 303
        shown = " ".join(bob.get("/people").text.split())
        assert "Bob &lt;b&gt;" in shown
        assert (
            "You may judge cells, settle disputes, edit the bank, draw samples and download files."
            in shown
        )
        assert "Invite a person" not in shown
        assert address not in ada.get("/people").text
        for name, role in (("bob <B>", "owner"), ("", "owner")):
            answer = ada.post("/people/invite", {"name": name, "role": role})
            assert 'role="alert"' in answer.text or answer.status == 400
        assert "revokes their own" in ada.post("/people/revoke", {"name": "ADA"}).text
        assert ada.post("/people/revoke", {"name": "Bob <b>"}).status == 200
        assert bob.get("/people").status == 401
        assert ada.get("/people").status == 200


# ---- roles ---------------------------------------------------------------------------------------


def changing_routes() -> list[str]:
    """Every address of the pages that accepts a POST."""
    return sorted(
        route.path
        for page in import_pages()
        for route in page.router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    )


def test_every_change_names_the_action_that_it_needs() -> None:
    assert changing_routes() == sorted(POSTS)
    # an address that nobody thought of is for owners
    assert needed_action("POST", "/new") == "manage"


def content(path: Path) -> list[object]:
    """The decisions and edits of a collection."""
    with Collection(path) as collection:
        return [*collection.decisions.list(), *collection.bank().log().rows]


@pytest.mark.parametrize("role", ROLES)
def test_every_change_is_refused_to_roles_that_do_not_permit_it(
    group: dict[Role, Client], path: Path, role: Role
) -> None:
    before, refused = content(path), []
    for address in [*changing_routes(), "/new"]:
        # an empty form: it changes nothing even where it is permitted
        answer = group[role].post(address, query="q1")
        action = needed_action("POST", address)
        assert action is not None
        assert (answer.status == 403) == (not may(role, action)), (address, answer.status)
        if answer.status == 403:
            refused.append(address)
            assert "you may not" in answer.text
    assert content(path) == before
    assert len(refused) == sum(not may(role, one) for one in [*POSTS.values(), "manage"])
    assert bool(refused) == (role != "owner")


def form_of(answer: Answer) -> dict[str, str]:
    """The form of the cell that a page shows."""
    return pages.read(answer.text).by_id("stage").all("form")[0].fields()


def test_an_assessor_settles_no_dispute_and_takes_no_adjudication_back(
    tmp_path: Path,
) -> None:
    path = live.graded(tmp_path)
    live.decide_some(path)
    with live.serving(path, assessors=("ada", "grace"), role="assessor") as served:
        ada, owner = Client(served).enter("ada"), People()
        served.access.people.add("olga", "owner")
        olga = Client(served).enter("olga")
        with Collection(path) as collection:
            (dispute,) = collection.decisions.disputes()
            adjudicated = next(
                o.decision for o in collection.decisions.list() if o.decision.adjudicates
            )
        query, item, passage = dispute.cell
        page = olga.get("/judge/case", query=query, item=item, passage=passage, order="disputes")
        form = form_of(page) | {"rating": "3"}
        assert form["adjudicates"] == "1"
        before = content(path)
        assert ada.post("/judge/decide", form).status == 403
        for address, query_of in (("/judge/undo", {}), ("/history/undo", {"what": "decisions"})):
            number = str(adjudicated.number)
            answer = ada.post(address, {"number": number}, **query_of)
            assert (address, answer.status) == (address, 403)
        assert ada.post("/history/undo", {"number": "1"}, what="edits").status == 403
        assert content(path) == before
        assert olga.post("/judge/decide", form).status == 303
        assert len(content(path)) == len(before) + 1
        assert owner.everybody() == ()


@pytest.mark.parametrize("address", ["/export/bank.csv", "/export/graded.jsonl.gz"])
def test_an_assessor_downloads_no_items(group: dict[Role, Client], address: str) -> None:
    assert group["assessor"].get(address).status == 403
    assert group["editor"].get(address).status == 200


def test_an_assessor_judges(group: dict[Role, Client], path: Path) -> None:
    form = form_of(group["assessor"].get("/judge")) | {"rating": "3"}
    assert group["assessor"].post("/judge/decide", form).status == 303
    with Collection(path) as collection:
        assert collection.decisions.list()[-1].decision.author == "an assessor"


def test_the_queue_is_shared_among_the_assessors_alone() -> None:
    people = People()
    http: Any = SimpleNamespace(
        app=SimpleNamespace(state=SimpleNamespace(access=Access(people, frozenset())))
    )
    live_collection: Any = None
    request = PageRequest(http, live_collection, Person("olga", "owner"))
    people.add("olga", "owner")
    alone = request.people
    for name in ("bob", "ann"):
        people.add(name, "assessor")
    assert (alone, request.people) == (("olga",), ("ann", "bob"))


def test_owners_see_the_programs_and_what_they_asked_of_the_sealed_part(tmp_path: Path) -> None:
    path = sealed_exam.make(tmp_path / "my.exam")
    with live.serving(path, assessors=("ann",)) as served:
        served.access.people.add("zoe", "owner")
        served.access.people.add("bob", "assessor")
        owner, assessor = Client(served).enter("zoe"), Client(served).enter("bob")
        assert "Programs" not in owner.get("/people").text
        token = sealed_exam.client(path, "nightly")
        with sealed_exam.service(path) as opened:
            bot = sealed_exam.identified(opened, token)
            opened.submit(bot, sealed_exam.answers(sealed_exam.words_of(path, "sealed")))
        shown = owner.get("/people").text
        assert "nightly" in shown
        assert "Submissions to the sealed part" in shown
        assert 'data-drawing="/people/sealed.svg' in shown
        assert "chart.js" in shown
        assert "nightly" in owner.get("/people/sealed.csv").text
        assert assessor.get("/people/sealed.csv").status == 403
        assert "nightly" not in assessor.get("/people").text
