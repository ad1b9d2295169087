"""The Python package of xoff with the scheme port-pause. It runs in the directory of this crate."""

import port_pause
import xoff

assert port_pause.__version__ == xoff.__version__
assert xoff.schemes("port-pause").strip().startswith("port-pause:")
scenario = xoff.Scenario.load("scenario.toml")
assert scenario.to_dict()["flow_control"]["scheme"] == "port-pause"
run = scenario.run()
assert run.summary["pauses"]["count"] == len(run.pauses) > 0
assert run.summary["drops"]["lossless_packets"] == 0
grid = xoff.Grid(scenario, vary={"flow_control.scheme": ["port-pause", "pfc"]}).run()
assert grid.table["flow_control.scheme"] == ["port-pause", "pfc"]
try:
    scenario.set("flow_control.xoff", "-1B")
except xoff.ScenarioError as error:
    assert error.key == "flow_control.xoff", error
else:
    raise AssertionError("a negative threshold was accepted")
print("the Python package has the scheme port-pause")
