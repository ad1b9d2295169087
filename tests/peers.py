"""tools/peers.py says what is missing, and compares xoff with simulators that are small scripts here.

    peers.py [XOFF]

XOFF is the program xoff. Without it a script takes its place, too.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "tools/peers.py"

# Completes every flow of the matrix after 800 us; with LOSE the last flow never completes. With one of the recorded
# matrices flows end after 100 and 200 us.
PEER = r"""#!/bin/sh
case "$2" in */connection_matrices/*)
    for flow in 1_0:100 2_0:200; do echo "Flow Uec_${flow%:*} 7 finished at ${flow#*:} total bytes 2000000"; done
    exit
esac
for matrix; do :; done
sed -n '/->/p' "$matrix" | sed "${LOSE:+\$d}" |
    sed 's/\([0-9]*\)->\([0-9]*\) .*/.Flow Roce_\1_\2 7 finished at 800.2 total bytes 2000000/'
"""
XOFF = r"""#!/bin/sh
if [ "$1" = repro ]; then
    m() { echo '{"run": "'$1'", "metric": "'$2'", "says": "within '$3'% of 200 us", "mean": '$4'}'; }
    echo '{"experiments": [{"claims": [{"measures": ['
    echo "$(m one last 1 201), $(m incast-15 first 20 "${FIRST:-119}"), $(m outcast flow-1-0 5 96), $(m other last 1 9)"
    echo ']}]}]}'
    exit
fi
flows=$(grep -c '^[0-9]' "${2%.toml}.csv")
echo '{"sizes": [{"name": "all", "finished": '$flows'}], "simulated_ps": 900000000}'
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def pretend(root):
    """Checkouts whose builds copy the scripts above, compilers that do nothing, and xoff."""
    csg, uet, tools = root / "csg", root / "uet/htsim/sim", root / "tools"
    write(csg / "sim/datacenter/main_roce.cpp", "")
    write(csg / "sim/Makefile", "libhtsim.a:\n\ttouch $@\n")
    write(csg / "sim/datacenter/Makefile", "htsim_roce: peer ../libhtsim.a\n\tcp $< $@\n")
    write(csg / "sim/datacenter/peer", PEER)
    write(uet / "datacenter/main_uec.cpp", "")
    write(uet / "peer", PEER)
    write(tools / "cmake", "#!/bin/sh\ncp peer datacenter/htsim_uec\n")
    for compiler in ["g++", "c++"]:
        write(tools / compiler, "#!/bin/sh\n")
    write(root / "xoff", XOFF)
    write(root / "empty/file", "")


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        pretend(root)
        xoff = sys.argv[1] if len(sys.argv) > 1 else root / "xoff"
        path = f"{root / 'tools'}:{os.environ['PATH']}"

        def run(*arguments, program=xoff, **environment):
            command = [sys.executable, SCRIPT, "--runs", "1", "--xoff", program, *arguments]
            environment = {**os.environ, "PATH": path, "TMPDIR": directory, **environment}
            return subprocess.run(command, env=environment, capture_output=True, text=True)

        def fails(message, *arguments, status=1, **options):
            found = run(*arguments, **options)
            assert found.returncode == status and message in found.stderr, (message, found)
            assert " / xoff" not in found.stdout, found

        csg, uet = ["--csg", root / "csg"], ["--uet", root / "uet"]
        fails("name at least one checkout: --csg DIR, --uet DIR or both", status=2)
        fails("--runs 0: the minimum is 1", *csg, "--runs", "0", status=2)
        fails("this directory is no checkout of csg-htsim, because it has no sim/datacenter/main_roce.cpp. "
              "Run `git clone https://github.com/Broadcom/csg-htsim`", "--csg", root / "empty")
        fails("UET htsim needs cmake for its build", *uet, PATH=str(root / "empty"))
        fails("Build it with `cargo build --release --locked --bin xoff`", *csg, program=root / "none")
        fails("csg-htsim completed 127 of 128 flows", *csg, LOSE="1")

        found = run(*csg, *uet)
        assert found.returncode == 0, found
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found.stdout.splitlines() if "|" in line]
        assert [row[:2] for row in rows[2:]] == [
            [hosts, name] for hosts in ["128", "1,024"]
            for name in ["csg-htsim", "UET htsim", "xoff, 1 thread", "xoff, default threads"]
        ], rows
        for hosts, name, wall, cpu, memory, *ratios, last in rows[2:]:
            assert float(wall) > 0 and float(cpu) >= 0 and float(memory) > 0, rows
            assert ratios == ["1.00", "1.00"] or name != "xoff, 1 thread", rows
            # A path of 2 or 6 links of 1 us, and 500 packets of 325 ns: 166.7 us at least.
            assert 166 < float(last) < 10_000 if "xoff" in name else last == "800", rows

        fails("--cases needs a checkout of UET htsim: --uet DIR", *csg, "--cases", status=2)
        for first, times in [("119", 3), ("121", 2)]:
            found = run(*uet, "--cases", program=root / "xoff", FIRST=first)
            assert found.returncode == (0 if times == 3 else 3), found
            assert found.stdout.startswith(f"{times} of 3 times agree; "), found
            assert f"{int(first) - 100:+.1f}% | incast-15 |" in found.stdout, found

        write(root / "csg/sim/Makefile", "libhtsim.a:\n\t@echo no compiler; false\n")
        (root / "csg/sim/libhtsim.a").unlink()
        (root / "csg/sim/datacenter/htsim_roce").unlink()
        found = run(*csg)
        message, log = found.stderr.splitlines()[-1].split(". Its output is in ")
        assert found.returncode == 1 and "libhtsim.a` failed in " in message, found
        assert "no compiler" in Path(log).read_text(), log
    print("tools/peers.py: the comparison and its errors are right")


if __name__ == "__main__":
    main()
