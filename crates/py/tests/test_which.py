"""The page that compares flow controls, which tools/which_flow_control.py makes."""

import importlib.util

from conftest import ROOT

import xoff

_spec = importlib.util.spec_from_file_location("which", ROOT / "tools/which_flow_control.py")
which = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(which)


def test_the_numbers_of_the_page_are_those_of_this_version():
    base = xoff.Scenario.from_dict(which.BASE, name="which")
    good, refused = which.cases(base)
    kept = which.DATA.read_text().splitlines()
    assert [tuple(line.split(",")[:4]) for line in kept[1:]] == [tuple(case.split("..")) for case in good]
    assert all("PortFC" in case for case in refused)
    some = {case: keys for case, keys in good.items() if case.startswith("3-tier..all-to-all..")}
    grid = xoff.Grid(base, variants=some, seeds=which.SEEDS).run(jobs=2)
    made = which.data(which.gather(base, some, grid)).splitlines()
    assert made[0] == kept[0]
    assert made[1:] == [line for line in kept if line.startswith("3-tier,all-to-all,")]
