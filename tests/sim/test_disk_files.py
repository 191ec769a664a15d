# SPDX-License-Identifier: GPL-2.0-only
"""What hdd_init() and the files of disks/ refuse, and how their values are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from disk_driver import EINVAL, FLAT, MS, ROOT, SMALL, disk_core, drive_memory
from said import refusal

from streamsched.base.errors import UsageError
from streamsched.sim import diskfile
from streamsched.sim.diskfile import load_disk

BAD_PARAMS: list[tuple[dict[str, Any], str]] = [
    ({"kind": 2}, "kind"),
    ({"capacity_sectors": 0}, "capacity_sectors"),
    ({"capacity_sectors": 2**48 + 1}, "capacity_sectors"),
    ({"capacity_sectors": 3329}, "fewer sectors than the capacity"),
    ({"capacity_sectors": 2 * (7 * 100 + 5 * 83)}, "last zone"),
    ({"queue_depth": 0}, "queue_depth"),
    ({"queue_depth": 255}, "queue_depth"),
    ({"read_watermark_permille": 1001}, "read_watermark_permille"),
    ({"watermark_of": 2}, "watermark_of"),
    ({"write_series": 2}, "write_series"),
    ({"overhead_ns": [0] * 7 + [100 * MS]}, "overhead_ns"),
    ({"interface_unit_sectors": 0}, "interface_unit_sectors"),
    ({"interface_unit_sectors": 65536}, "interface_unit_sectors"),
    ({"ahead_until": 5}, "ahead_until"),
    ({"write_empties": 2}, "write_empties"),
    ({"write_order": 2}, "write_order"),
    ({"write_share_permille": 901}, "write_share_permille"),
    ({"physical_sectors": 2}, "physical_sectors"),
    ({"segment_keeps_read": 2}, "segment_keeps_read"),
    ({"write_cache_durable": 2}, "write_cache_durable"),
    ({"write_saves_ns": 51 * MS}, "write_saves_ns"),
    ({"interface_bytes_per_s": 0}, "interface_bytes_per_s"),
    ({"command_overhead_ns": 100 * MS}, "command_overhead_ns"),
    ({"flush_ns": 10_000 * MS}, "flush_ns"),
    ({"queue_order": 2}, "queue_order"),
    ({"queue_age_permille": 1001}, "queue_age_permille"),
    ({"rotation_ns": 0}, "rotation_ns"),
    ({"rotation_ns": 50 * MS + 1}, "rotation_ns"),
    ({"surfaces": 0}, "surfaces"),
    ({"surfaces": 65}, "surfaces"),
    ({"nr_zones": 0}, "zones"),
    ({"nr_zones": 65}, "zones"),
    ({"zone_cylinders": [7, 0, 9]}, "cylinders"),
    ({"zone_sectors_per_track": [100, 83, 7]}, "sectors per track"),
    ({"zone_sectors_per_track": [100, 83, 65536]}, "sectors per track"),
    ({"track_skew_ns": 8_333_333}, "skew"),
    ({"cylinder_skew_ns": 8_333_333}, "skew"),
    ({"head_switch_ns": 1_100_002}, "track_skew_ns"),
    ({"write_settle_ns": 51 * MS}, "write_settle_ns"),
    ({"nr_seek_points": 0}, "seek points"),
    ({"seek_cylinders": [2, 5, 40]}, "first seek point"),
    ({"seek_cylinders": [1, 40, 40]}, "ascending"),
    ({"seek_cylinders": [1, 5, 19]}, "full stroke"),
    ({"seek_ns": [1_500_000, 1_349_999, 9 * MS]}, "nine tenths"),
    ({"seek_ns": [1_500_000, 2 * MS, 200 * MS]}, "200000000"),
    ({"seek_ns": [1_700_004, 2 * MS, 9 * MS]}, "cylinder_skew_ns"),
    ({"segments": 0}, "segments"),
    ({"segments": 65}, "segments"),
    ({"segment_sectors": 0, "readahead_sectors": 0}, "segment_sectors"),
    ({"readahead_sectors": 65}, "readahead_sectors"),
    ({"write_cache_extents": 0}, "write_cache_extents"),
    ({"write_cache_extents": 32769}, "write_cache_extents"),
    ({"write_idle_ns": 10_000 * MS}, "write_idle_ns"),
]
BAD_FLAT: list[tuple[dict[str, Any], str]] = [
    ({"flat_channels": 0}, "flat_channels"),
    ({"flat_channels": 33}, "flat_channels"),
    ({"flat_read_ns": 1000 * MS}, "flat_read_ns"),
    ({"flat_write_bytes_per_s": 0}, "flat_write_bytes_per_s"),
]


@pytest.mark.parametrize(
    ("params", "said"),
    [(SMALL | change, said) for change, said in BAD_PARAMS]
    + [(FLAT | change, said) for change, said in BAD_FLAT],
)
def test_bad_parameters_are_refused(params: dict[str, Any], said: str) -> None:
    ffi, lib = disk_core()
    why = ffi.new("const char **")
    struct = ffi.new("struct hdd_params *", params)
    memory = drive_memory(struct)
    assert lib.hdd_drive_init(memory[0], struct, why) == -EINVAL
    assert said in ffi.string(why[0]).decode()


@pytest.mark.parametrize("name", diskfile.list_disks())
def test_shipped_disks_are_whole(name: str) -> None:
    disk = load_disk(name)
    assert disk.name == name
    ffi, lib = disk_core()
    params, why = ffi.new("struct hdd_params *", disk.params()), ffi.new("const char **")
    memory = drive_memory(params)
    assert lib.hdd_drive_init(memory[0], params, why) == 0, ffi.string(why[0])
    fields = {field for field, _ in ffi.typeof("struct hdd_params").fields}
    assert set(disk.params()) == fields
    assert disk.published
    assert load_disk(str(ROOT / "disks" / f"{name}.toml")) == disk


# Descriptions of their own, so that a shipped disk can change.
DISK = """
name = "mine"
model = "A disk"
description = "for tests"
kind = "mechanical"
capacity_sectors = 100000

[interface]
rate_mb_s = 300
command_overhead_us = 60
queue_depth = 32
queue_order = "sptf"
queue_age_permille = 50
queue_age_limit_ms = 2000

[geometry]
rotation_rpm = 7200
surfaces = 4
zones = [[10, 1500], [20, 700]]
track_skew_us = 1500
cylinder_skew_us = 2000

[seek]
curve = [[1, 2.0], [10, 2.2], [29, 4.125]]
head_switch_us = 1500
write_settle_us = 2000

[cache]
segments = 8
segment_kib = 1536
readahead_kib = 1536
write_kib = 4096
write_extents = 128
write_idle_ms = 20
flush_ms = 5.5

[[published]]
figure = "inner_mb_s"
value = 50
source = "a sheet"
fitted = true
"""
SSD = """
name = "mine"
model = "An SSD"
description = "for tests"
kind = "flat"
capacity_sectors = 100000

[interface]
rate_mb_s = 600
command_overhead_us = 2.9
queue_depth = 32

[flat]
channels = 16
read_us = 66.7
write_us = 17.2
read_mb_s = 560
write_mb_s = 530
flush_ms = 1
"""
# What is changed in it, and what is said then.
MISTAKES = {
    ('kind = "mechanical"', ""): 'kind: is missing; it must be "mechanical" or "flat"',
    ('"mechanical"', '"tape"'): 'kind: is "tape" but must be "mechanical" or "flat"',
    ("surfaces = 4", ""): "geometry.surfaces: is missing; it must be a number from 1 to 64",
    ("surfaces = 4", "surfaces = 65"): "geometry.surfaces: is 65 but must be a number fr",
    ("surfaces = 4", "surfaces = true"): "geometry.surfaces: is true but must be a number",
    ("surfaces = 4", "surfaces = nan"): "geometry.surfaces: is NaN but must be a number",
    ("surfaces = 4", "surfaces = 3.5"): "geometry.surfaces: is 3.5 but must be whole",
    ("surfaces = 4", 'surfaces = "4"'): 'geometry.surfaces: is "4" but must be a number',
    ("surfaces = 4", "surface = 4"): "geometry.surface: no such key, did you mean 'surfac",
    ("[geometry]", "[geometrie]"): "geometrie: no such table for this kind of disk, did yo",
    ("[cache]", "[cash]"): "cash: no such table for this kind of disk, did you mean 'cac",
    ("segment_kib = 1536", "segment_kib = 3"): "cache.segment_kib: is 3 but must",
    ("write_kib = 4096", "write_kib = 2"): "cache.write_kib: must be 0, for none, or at",
    ("[1, 2.0]", "[2, 2.0]"): "seek.curve[0]: is for 2 cylinders but must be for 1",
    ("[1, 2.0]", "[1, 2.1]"): "seek.curve[0]: must not take longer than geometry.cylinder",
    ("[1, 2.0]", "1"): "seek.curve[0]: is 1 but must be a pair of numbers [a, b]",
    ("[1, 2.0]", "[1, 2.0000001]"): "seek.curve[0][1]: is 2.0000001 but must be a multip",
    ("[10, 2.2]", "[10, 1.79]"): "seek.curve[1]: must not take less than nine tenths",
    ("segments =", "keeps_read = 1\nsegments ="): "cache.keeps_read: is 1 but must be",
    ("segments =", 'write_order = "up"\nsegments ='): 'cache.write_order: is "up" but',
    ("segments =", "write_share_percent = 91\nsegments ="): (
        "cache.write_share_percent: is 91 but must be a number from 0 to 90"
    ),
    ("[seek]", "[overhead]\nread_hit_us = [1, 2, 3]\n[seek]"): (
        "overhead.read_hit_us: must be a number, or a pair [after a read, after a write]"
    ),
    ("surfaces =", "physical_sector_bytes = 1024\nsurfaces ="): (
        "geometry.physical_sector_bytes: is 1024 but must be 512 or 4096"
    ),
    ("[29, 4", "[28, 4"): "seek.curve[2]: is for 28 cylinders but the last one must",
    ("[20, 700]", "[14, 700]"): "geometry.zones: hold 99200 sectors but must hold the",
    ("[20, 700]", "[20, 700], [1, 700]"): "geometry.zones: the last zone begins at sector",
    ("= 7200", "= 720"): "geometry.rotation_rpm: is 720 but must be a number from 1200",
    ("d_kib = 1536", "d_kib = 1537"): "cache.readahead_kib: must not be lar",
    ("head_switch_us = 1500", "head_switch_us = 1501"): "seek.head_switch_us: must not be",
    ('"sptf"', '"elevator"'): 'interface.queue_order: is "elevator" but must be "fifo" or',
    ("queue_depth", 'order = ["series"]\nqueue_depth'): (
        'interface.order: is ["series"] but must be "overlapped" or "series", or a list: reads'
    ),
    ("queue_depth", 'order = "series"\nread_watermark = 0.5\nqueue_depth'): (
        "interface.read_watermark: is only for reads that are overlapped"
    ),
    ("queue_depth", 'order = "series"\nwatermark_of = "segment"\nqueue_depth'): (
        "interface.watermark_of: is only for reads that are overlapped"
    ),
    ("queue_depth", "read_watermark = 1.5\nqueue_depth"): (
        "interface.read_watermark: is 1.5 but must be a number from 0 to 1"
    ),
    ("capacity_sectors =", "capacity_sectors = ["): "not a TOML file",
    ("= 7200", f"= {'7' * 5000}"): "not a TOML file: a number has thousands of digits",
    ("= 7200", f"= 0x{'7' * 5000}"): "not a TOML file: a number has thousands of digits",
    ("= 7200", f"= 1e{'7' * 20}"): "not a TOML file: an exponent is out of range",
    ("= 7200", f"= 1e-{'7' * 20}"): "not a TOML file: an exponent is out of range",
    ("= 7200", f"= {'[' * 5000}"): "not a TOML file: too many lists within lists",
    ('figure = "inner_mb_s"', 'figure = "inner"'): '].figure: is "inner" but must be one',
}
MISTAKES_OF_AN_SSD = {
    ("[flat]", "[geometry]\nsurfaces = 1\n[flat]"): "geometry: no such table for this ki",
    ("channels = 16", "channels = 0"): "flat.channels: is 0 but must be a number from 1 t",
}


@pytest.mark.parametrize(
    ("text", "change", "said"),
    [(DISK, *row) for row in MISTAKES.items()]
    + [(SSD, *row) for row in MISTAKES_OF_AN_SSD.items()],
)
def test_a_bad_file_is_refused_in_one_sentence(
    text: str, change: tuple[str, str], said: str
) -> None:
    old, new = change
    assert old in text
    message = refusal(diskfile.parse_disk, text.replace(old, new, 1), "my.toml")
    assert message.startswith("my.toml: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("line", "permille", "of_segment", "series"),
    [
        ("", 0, 0, 0),
        ('order = "series"', 1000, 0, 1),
        ('order = ["series", "overlapped"]', 1000, 0, 0),
        ('order = ["overlapped", "series"]\nread_watermark = 0.125', 125, 0, 1),
        ('read_watermark = 1\nwatermark_of = "segment"', 1000, 1, 0),
    ],
)
def test_the_order_of_medium_and_interface(
    line: str, permille: int, of_segment: int, series: int
) -> None:
    disk = diskfile.parse_disk(DISK.replace("queue_depth", f"{line}\nqueue_depth"), "my.toml")
    assert disk.read_watermark_permille == permille
    assert (disk.watermark_of, disk.write_series) == (of_segment, series)


def test_what_is_wrong_is_named_with_its_line() -> None:
    def line(text: str) -> int:
        found = re.search(r" \(line (\d+)\)$", refusal(diskfile.parse_disk, text, "my.toml"))
        return int(found[1]) if found else 0

    def at(text: str) -> int:
        return DISK[: DISK.index(text)].count("\n") + 1

    assert line(DISK.replace("surfaces = 4", "surfaces = 0")) == at("surfaces")
    assert line(DISK.replace("[1, 2.0]", "[2, 2.0]")) == at("curve =")
    assert line(DISK.replace("surfaces = 4\n", "")) == at("[geometry]")
    assert line(DISK.replace('name = "mine"\n', "")) == 0
    assert line(DISK.replace('figure = "inner_mb_s"', 'figure = "inner"')) == at(
        'figure = "inner_mb_s"'
    )


def test_names_that_are_not_disks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no disk is called 'WD5000AAK', did you mean 'wd5000aa"):
        load_disk("WD5000AAK")
    with pytest.raises(
        UsageError, match=r"no disk is called 'qqq'; there are archive-8tb, deskstar-34gxp, "
    ):
        load_disk("qqq")
    missing = tmp_path / "none.toml"
    with pytest.raises(UsageError, match=re.escape(f"{missing}: cannot read it: No such file")):
        load_disk(str(missing))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not a TOML file"):
        load_disk(str(binary))
    with pytest.raises(UsageError, match="cannot read it: Is a directory"):
        load_disk(f"{tmp_path}/")


def test_values_are_converted_exactly() -> None:
    disk = diskfile.parse_disk(DISK, "my.toml")
    assert disk.rotation_ns == 8_333_333
    assert disk.interface_bytes_per_s == 300_000_000
    assert disk.seek_cylinders == (1, 10, 29)
    assert disk.seek_ns == (2_000_000, 2_200_000, 4_125_000)
    assert disk.zone_sectors_per_track == (1500, 700)
    assert disk.segment_sectors == 3072
    assert disk.flush_ns == 5_500_000
    assert disk.write_idle_ns == 20 * MS
    assert [row.value for row in disk.published] == ["50"]
    assert diskfile.parse_disk(SSD, "my.toml").flat_read_ns == 66_700
