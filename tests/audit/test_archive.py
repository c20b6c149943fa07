import io
import os
import tarfile
import time

import pytest

from impact_twin.audit.archive import Caps, entries
from impact_twin.errors import InputError


def make_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, value in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(value, bytes):
                info.size = len(value)
                archive.addfile(info, io.BytesIO(value))
            else:
                archive.addfile(info)
    return path


def link(name, kind, target="a.json"):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_compression_gives_the_same_bytes(tmp_path, mode):
    path = make_tar(tmp_path / "a.tar", [("r/a.json", b"one"), ("r/b.json", b"")], mode)
    assert [(item.name, item.data) for item in entries(path)] == [
        ("r/a.json", b"one"),
        ("r/b.json", b""),
    ]


def test_a_folder_is_read_in_a_fixed_order_and_links_are_not_followed(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.json").write_bytes(b"z")
    (tmp_path / "a.json").write_bytes(b"a")
    (tmp_path / "c.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "d").symlink_to(tmp_path / "b")
    found = list(entries(tmp_path))
    assert [item.name for item in found] == ["a.json", "c.json", "d", "b/z.json"]
    assert [item.refused for item in found] == [
        "",
        "a link or a device, not a file",
        "a link or a device, not a file",
        "",
    ]


def test_a_folder_that_links_to_itself_ends(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path)
    assert len(list(entries(tmp_path))) == 1


def test_names_that_climb_out_of_the_archive_are_only_names(tmp_path):
    path = make_tar(tmp_path / "a.tar", [("../../escaped.json", b"x"), ("/abs.json", b"y")])
    assert [item.data for item in entries(path)] == [b"x", b"y"]
    assert not (tmp_path.parent / "escaped.json").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_in_an_archive_are_refused_and_counted(tmp_path, kind):
    path = make_tar(
        tmp_path / "a.tar", [("a.json", b"x"), (link("l.json", kind, "/etc/passwd"), None)]
    )
    kept, refused = entries(path)
    assert kept.data == b"x"
    assert refused.data is None
    assert "link" in refused.refused


def test_a_member_over_the_cap_is_refused_and_the_next_one_is_read(tmp_path):
    path = make_tar(tmp_path / "a.tar", [("big.json", b"x" * 2000), ("b.json", b"y")])
    big, small = entries(path, Caps(entry=1000))
    assert (big.data, big.refused) == (None, "larger than 1000 bytes")
    assert small.data == b"y"


def test_a_file_over_the_cap_in_a_folder_is_refused(tmp_path):
    (tmp_path / "big.json").write_bytes(b"x" * 11)
    (only,) = entries(tmp_path, Caps(entry=10))
    assert only.refused == "larger than 10 bytes"


def test_too_many_entries_end_the_reading(tmp_path):
    members = [(f"{number}.json", b"") for number in range(5)]
    path = make_tar(tmp_path / "a.tar", members)
    with pytest.raises(InputError, match="more than 3 entries"):
        list(entries(path, Caps(entries=3)))


def test_a_bomb_is_cut_off(tmp_path):
    path = make_tar(tmp_path / "a.tar", [("a.json", b"\0" * 30_000_000)], "w:xz")
    assert path.stat().st_size < 20_000
    before = time.monotonic()
    with pytest.raises(InputError, match="bytes unpacked"):
        list(entries(path, Caps(entry=10_000, total=1_000_000)))
    assert time.monotonic() - before < 5


def test_a_header_that_claims_gigabytes_is_refused_before_it_is_read(tmp_path):
    info = tarfile.TarInfo("long")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 8 * 1024**3 - 1
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10_240)
    with pytest.raises(InputError):
        list(entries(path))


@pytest.mark.parametrize("cut", [700, 1100, 5000])
def test_an_archive_cut_short_is_an_error_not_a_short_list(tmp_path, cut):
    path = make_tar(tmp_path / "a.tar", [("a.json", b"x" * 4000), ("b.json", b"y" * 4000)])
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="not one whole tar archive"):
        list(entries(path))


def test_a_second_archive_behind_the_first_is_not_left_out_in_silence(tmp_path):
    first = make_tar(tmp_path / "a.tar", [("a.json", b"x")])
    second = make_tar(tmp_path / "b.tar", [("b.json", b"y")])
    path = tmp_path / "both.tar"
    path.write_bytes(first.read_bytes() + second.read_bytes())
    with pytest.raises(InputError, match="not one whole tar archive"):
        list(entries(path))


def test_a_damaged_header_in_the_middle_is_an_error_not_the_end(tmp_path):
    path = make_tar(tmp_path / "a.tar", [("a.json", b"x"), ("b.json", b"y"), ("c.json", b"z")])
    data = bytearray(path.read_bytes())
    data[1024 + 148 : 1024 + 156] = b"9999999\0"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not one whole tar archive"):
        list(entries(path))


@pytest.mark.parametrize("data", [b"", b"hello", b"\xfd7zXZ\x00junk", b"PK\x03\x04" + b"\0" * 600])
def test_what_is_no_archive_is_an_input_error(tmp_path, data):
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    with pytest.raises(InputError):
        assert list(entries(path)) == ["an empty file must not pass for an empty archive"]


def test_a_missing_path_and_a_pipe_are_input_errors(tmp_path):
    with pytest.raises(InputError, match="can't be read"):
        list(entries(tmp_path / "nowhere"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a folder nor a file"):
        list(entries(tmp_path / "pipe"))
