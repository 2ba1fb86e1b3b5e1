"""From files to a leaderboard on pages: upload, recognition, import, and what is refused."""

from __future__ import annotations

import errno
import io
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from support import exams, live
from support.browsers import faults, page_of
from support.live import Answer, Client

import exampp
from exampp.errors import InputError
from exampp.web import app
from exampp.web.serving import created_if_new
from exampp.web.uploads import MOST_FILES, NAME_BYTES, Uploads, file_name

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ANSWERS = (
    "question,system,answer\n"
    "why is the sky blue,chat,Air scatters blue light.\n"
    "how do magnets work,chat,Spins align.\n"
    "why is the sky blue,copy,Compasses point north.\n"
    "how do magnets work,copy,Compasses point north.\n"
)
QUESTIONS = (
    "query_id,query_text,question\n"
    "s,why is the sky blue,What does air scatter?\n"
    "m,how do magnets work,What aligns?\n"
)


LOG = (
    '{"input": "why is the sky blue", "actual_output": "Air scatters blue light.", '
    '"retrieval_context": ["Air scatters blue light."], "cost": 1}'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "new.exam"
    exampp.create(file).close()
    return file


def upload(client: Client, files: Mapping[str, bytes | str]) -> Answer:
    """Post a form with files, as a browser does."""
    bound = "exampp-test-boundary"
    body = b""
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        head = (
            f'--{bound}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        )
        body += head.encode() + data + b"\r\n"
    headers = {
        "content-type": f"multipart/form-data; boundary={bound}",
        "origin": f"http://{client.host}",
    }
    return client.request("POST", "/files/add", headers, body + f"--{bound}--\r\n".encode())


def contents(path: Path) -> list[tuple[object, ...]]:
    with exampp.Collection(path) as collection:
        return [tuple(row) for row in collection.contents().rows]


def test_uploads_are_recognised_first_and_imported_as_the_command_does(
    client: Client, path: Path, tmp_path: Path
) -> None:
    files = exams.write_files(tmp_path / "files")
    empty = contents(path)
    text = upload(client, {one.name: one.read_bytes() for one in files}).text
    for found in ("queries, 2 records", "qrels, 4 records", "run, 5 records"):
        assert found in text, found
    assert contents(path) == empty
    text = client.post("/files/import").text
    assert "Imported." in text
    with exampp.create(tmp_path / "other.exam") as other:
        other.import_files(*files)
    assert contents(path) == contents(tmp_path / "other.exam")
    # the uploaded files are not kept
    assert "Recognised" not in client.get("/files").text


def test_an_error_names_the_file_and_changes_nothing(client: Client, path: Path) -> None:
    empty = contents(path)
    passages = '{"id": "p1", "text": "Air."}\n{"id": "p2"}\n'
    answer = upload(client, {"good.csv": ANSWERS, "mine.jsonl": passages})
    assert answer.status == 400
    assert "this may be passages or queries" in answer.text
    answer = client.post("/files/check", {"role-mine.jsonl": "passages"})
    assert answer.status == 400
    assert "mine.jsonl:2" in answer.text
    assert "exampp-uploads-" not in answer.text
    # each file is recognised nevertheless
    assert "responses" in answer.text
    assert client.post("/files/import").status == 400
    assert contents(path) == empty
    assert client.post("/files/remove", {"name": "mine.jsonl"}).status == 303
    assert "mine.jsonl" not in client.get("/files").text


def test_a_wrong_recognition_is_corrected_by_role_columns_and_system(
    client: Client, path: Path
) -> None:
    upload(client, {"mine.csv": "topic,reply\nwhy is the sky blue,Air scatters.\n"})
    form = {"columns": "question=topic\r\nanswer=reply\r\n", "role-mine.csv": "responses"}
    assert client.post("/files/check", {**form, "columns": "question=title"}).status == 400
    found = client.post("/files/check", {**form, "system": "chat"})
    assert found.status == 200
    assert client.post("/files/import", {**form, "system": "chat"}).status == 200
    with exampp.Collection(path) as collection:
        assert [one.system for one in collection.systems] == ["chat"]
        assert list(collection.query_texts().values()) == ["why is the sky blue"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"kind": "/etc/preset.toml"}, "unknown format"),
        ({"role-a.csv": "corpus"}, "unknown role"),
        ({"columns": "question"}, "--columns"),
        ({"depth": "deep"}, "a whole number"),
        ({"on_error": "ignore"}, "unknown choice"),
    ],
)
def test_options_from_outside_are_checked(
    client: Client, path: Path, form: dict[str, str], said: str
) -> None:
    empty = contents(path)
    upload(client, {"a.csv": ANSWERS})
    for address in ("/files/check", "/files/import"):
        answer = client.post(address, form)
        assert answer.status == 400
        assert said in answer.text
    assert contents(path) == empty


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\runs\\bm25.run", "bm25.run"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("a\0b\n.csv", "a_b_.csv"),
        ("Läufe 1.run.gz", "Läufe 1.run.gz"),
    ],
)
def test_a_name_leads_nowhere_else(name: str, stored: str) -> None:
    assert file_name(name) == stored


def test_a_long_name_keeps_its_suffix() -> None:
    name = file_name("ä" * 300 + ".run.gz")
    assert name.endswith(".run.gz")
    assert len(name.encode()) <= NAME_BYTES


def test_files_are_shown_as_what_they_are_without_a_check_and_beside_a_bad_file(
    client: Client,
) -> None:
    record = '{"question": "Why?", "answer": "Air.", "contexts": ["Blue light scatters."]}\n'
    assert upload(client, {"v1.jsonl": record}).status == 200
    text = client.get("/files").text
    assert "not checked" in text
    assert "unknown file type" not in text
    # the address of the form is opened or reloaded
    for path in ("add", "check", "import"):
        answer = client.get(f"/files/{path}")
        assert (answer.status, answer.headers["location"]) == (303, "/files")
    answer = upload(client, {"answers.csv": "question,system,answer\nWhy?,a,\n"})
    assert answer.status == 400
    assert "the system returned nothing: answer is empty" in answer.text
    assert "unknown file type" not in answer.text
    assert "queries, candidates, responses" in answer.text


def test_uploads_are_private_to_a_person_and_end_with_the_server(path: Path) -> None:
    with live.serving(path, assessors=("ada", "grace")) as served:
        clients = [Client(served).enter(name) for name in ("ada", "grace")]
        upload(clients[0], {"a.csv": ANSWERS})
        assert "a.csv" in clients[0].get("/files").text
        assert "a.csv" not in clients[1].get("/files").text
    uploads = Uploads()
    stored = uploads.add("ada", "a.csv", io.BytesIO(b"1"))
    assert uploads.add("ada", "x/a.csv", io.BytesIO(b"22")) == stored
    assert stored.read_bytes() == b"22"
    assert stored.parent.parent.stat().st_mode & 0o077 == 0
    for number in range(MOST_FILES - 1):
        uploads.add("ada", f"{number}", io.BytesIO())
    with pytest.raises(InputError, match="more than 200 files"):
        uploads.add("ada", "one more", io.BytesIO())
    uploads.close()
    assert not stored.parent.parent.exists()


def test_an_upload_that_is_too_large_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "UPLOAD_BYTES", 3 << 20)
    answer = upload(client, {"big.csv": b"x" * (4 << 20)})
    assert answer.status == 413
    # a length that is not stated is counted
    monkeypatch.setattr(app, "stated_bytes", lambda _: 0)
    answer = upload(client, {"big.csv": b"x" * (4 << 20)})
    assert (answer.status, "larger than" in answer.text) == (400, True)
    assert "big.csv" not in client.get("/files").text
    assert upload(client, {"fits.csv": b"x" * (2 << 20)}).status == 400  # no known format
    assert "fits.csv" in client.get("/files").text


def test_an_upload_that_breaks_off_leaves_nothing(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    head = (
        f"POST /files/add HTTP/1.1\r\nhost: {client.host}\r\norigin: http://{client.host}\r\n"
        f"cookie: {'; '.join(f'{name}={value}' for name, value in client.cookies.items())}\r\n"
        "content-type: multipart/form-data; boundary=x\r\ncontent-length: 9000000\r\n\r\n"
    )
    part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    with socket.create_connection(("127.0.0.1", client.port)) as half:
        half.sendall(f"{head}{part}".encode() + b"y" * 2_000_000)
        assert "a.csv" not in client.get("/files").text
    assert upload(client, {"b.csv": ANSWERS}).status == 200
    assert "a.csv" not in client.get("/files").text
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


def test_a_full_disk_is_a_sentence_and_leaves_no_part_of_a_file(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: object, target: IO[bytes], _size: int) -> None:
        target.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("exampp.web.uploads.shutil.copyfileobj", full)
        answer = upload(client, {"a.csv": ANSWERS})
    assert (answer.status, "No space left on device" in answer.text) == (503, True)
    assert "a.csv" not in client.get("/files").text
    assert upload(client, {"a.csv": ANSWERS}).status == 200


def test_a_form_without_a_file_and_a_body_that_is_no_form_are_refused(client: Client) -> None:
    assert upload(client, {}).status == 400
    assert upload(client, {"": "a"}).status == 400
    headers = {
        "content-type": "multipart/form-data; boundary=x",
        "origin": f"http://{client.host}",
    }
    assert client.request("POST", "/files/add", headers, b"nothing").status in (400, 422)


def test_a_new_collection_that_stays_empty_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "new.exam"
    with created_if_new(file) as is_new:
        assert is_new
        assert file.exists()
    assert not file.exists()
    with created_if_new(file), exampp.Collection(file) as collection:
        collection.add(queries={"q": "why"})
    with created_if_new(file) as is_new:
        assert not is_new
    assert file.exists()
    with created_if_new(tmp_path / "a typo") as is_new:
        assert not is_new
    assert [one.name for one in tmp_path.iterdir()] == ["new.exam"]
    with pytest.raises(InputError), created_if_new(tmp_path / "no" / "folder.exam"):
        pass


def test_from_two_files_to_a_leaderboard_in_a_browser(
    browser: Browser, client: Client, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    files = {"answers.csv": ANSWERS, "questions.csv": QUESTIONS}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with page_of(browser, client, axe=True) as (page, trouble):
        page.goto("/")
        assert faults(page) == []
        page.get_by_label("Drop files here").set_input_files([tmp_path / name for name in files])
        page.get_by_role("button", name="Add files").click()
        expect(page.locator("table").first).to_contain_text("responses, 4 records")
        assert faults(page) == []
        page.get_by_role("button", name="Import").click()
        expect(page.get_by_role("status")).to_contain_text("Imported.")
        assert faults(page) == []
        page.get_by_role("link", name="Results").first.click()
        expect(page.locator(".steps .done")).to_have_count(2)
        assert faults(page) == []
        page.get_by_role("link", name="Choose a grader").click()
        page.locator("#grader").select_option("draft")
        expect(page.get_by_label("Address of the server")).to_be_hidden()
        page.get_by_role("button", name="Show the price").click()
        expect(page.locator("#price")).to_contain_text("Cells pending")
        assert faults(page) == []
        page.get_by_role("button", name="Start grading").click()
        page.get_by_role("link", name="Open the leaderboard").click()
        rows = page.locator("table.board tbody .system")
        expect(rows).to_have_text(["chat", "copy"])
        assert trouble == []


def test_presets_are_named_and_can_be_chosen(client: Client) -> None:
    text = upload(client, {"log.json": f"[{LOG}]"}).text
    assert "deepeval (queries, candidates, responses)" in text
    assert "cost (1)" in text
    assert '<optgroup label="programs">' in text
    assert "<option>judgment-lists</option>" in text
    text = client.post("/files/check", {"kind": "deepeval"}).text
    assert "<option selected>deepeval</option>" in text
    assert client.post("/files/import", {"kind": "deepeval"}).status == 200
