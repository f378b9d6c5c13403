"""raffia bench micro: that its reports are whole. Never how fast."""

from conftest import USAGE, raffia


def micro(*options):
    return raffia("bench", "micro", "--runs", 1, "--json", *options).json


def test_loads_are_chosen_and_their_rows_are_whole():
    report = micro("--scenario", "mt2", "--scenario", "pairs")
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["pairs.floor", "pairs.space", "pairs.pool", "mt2.floor", "mt2.pool"]
    assert [row["threads"] for row in rows.values()] == [1, 1, 1, 2, 2]
    for row in rows.values():
        assert row["runs"] == 1 and row["median"] > 0
    values = report["values"]
    assert set(values) == {
        "micro.pairs_pool_ns",
        "micro.pairs_pool_refused_bytes",
        "micro.pairs_pool_refused_share",
        "micro.pairs_space_ns",
        "micro.pairs_space_refused_bytes",
        "micro.pairs_space_refused_share",
        "micro.pairs_floor_ns",
        "micro.mt2_pool_ns",
        "micro.mt2_pool_refused_bytes",
        "micro.mt2_pool_refused_share",
        "micro.mt2_floor_ns",
    }
    # 256 blocks of at most 64 MiB in 16 GiB, first in, first out: nothing is refused
    assert values["micro.pairs_pool_refused_bytes"] == values["micro.pairs_space_refused_bytes"] == 0


def test_an_adaptive_pool_is_measured_beside_the_other():
    report = micro("--scenario", "lifo1", "--adaptive")
    names = [row["name"] for row in report["rows"]]
    assert names == ["lifo1.floor", "lifo1.space", "lifo1.pool", "lifo1.adaptive"]
    assert report["values"]["micro.lifo1_adaptive_refused_bytes"] == 0


def test_loads_without_threads_run_in_a_process_that_has_one():
    assert not any("atomic" in note for note in micro("--scenario", "pairs")["notes"])


def test_bad_command_lines_are_usage_errors():
    assert "pairs, lifo1" in raffia("bench", "micro", "--scenario", "pair", expect=USAGE).err
    raffia("bench", "micro", "--runs", "0", expect=USAGE)
    raffia("bench", "micro", "pairs", expect=USAGE)
