"""The notebooks run, show what they draw, and are stored without output."""

import re

import nbclient
import nbformat
import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
#: A cell that draws by xoff.plot, by a method plot, or by matplotlib.
DRAWS = re.compile(r"^[^#\n]*\b(plot(\.\w+)?|subplots)\(", re.M)


def test_there_are_five():
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells), "stored with output"
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    drawn = 0
    for cell in cells:
        complaints = [out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stderr"]
        assert complaints == [], cell.source
        if DRAWS.search(cell.source):
            images = [out for out in cell.outputs if "image/png" in out.get("data", {})]
            assert images, f"no figure: {cell.source}"
            drawn += 1
    assert drawn > 0, "no figure in the whole notebook"
