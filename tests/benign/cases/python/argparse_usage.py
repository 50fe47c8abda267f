# A command line refused: usage on stderr, exit code 2.
import argparse

parser = argparse.ArgumentParser(prog="tool", description="Counts things.")
parser.add_argument("names", nargs="+")
parser.add_argument("-n", "--number", type=int, default=1, help="how many")
parser.add_argument("--kind", choices=["big", "small"])
group = parser.add_mutually_exclusive_group()
group.add_argument("-q", action="store_true")
group.add_argument("-v", action="count", default=0)
print(parser.parse_args(["x", "y", "-n", "3", "-vv"]))
parser.print_help()
parser.parse_args()
