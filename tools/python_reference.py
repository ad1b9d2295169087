"""Prints docs/PYTHON.md: every public class and function of the installed Python package, by its docstrings."""

import inspect
import re
import textwrap

import xoff
from xoff import plot

HEAD = """# Python reference

Every public class and function of the package `xoff`, from its docstrings. [Use xoff from Python](howto/python.md) is the introduction. Do not edit this page: `make python-reference` writes it.
"""
#: A heading of a docstring, and the form of its items.
SECTION = re.compile(r"^(Parameters|Returns|Raises|Attributes)\n-+\n", re.M)


class Plain(str):
    """A text that is shown without quotes."""

    __repr__ = str.__str__


def signature(function):
    """The signature without `self`, with the types as they are written."""
    parameters = inspect.signature(function)
    kept = [p for p in parameters.parameters.values() if p.name not in ("self", "cls")]
    kept = [p.replace(annotation=Plain(p.annotation)) for p in kept]
    kept = [p.replace(default=Plain("...")) if p.default is ... else p for p in kept]
    return str(parameters.replace(parameters=kept, return_annotation=Plain(parameters.return_annotation))).replace("_Path", "Path")


def items(text):
    """A section of a docstring as a list."""
    lines = []
    for line in text.strip().splitlines():
        if line.startswith(" "):
            lines[-1] += ("" if lines[-1].endswith(": ") else " ") + line.strip()
        elif line:
            names = ", ".join(f"`{name}`" for name in line.split(", "))
            lines.append(f"- {names}: ")
    return "\n".join(lines)


def words(text):
    """A docstring as Markdown."""
    parts = SECTION.split(inspect.cleandoc(text or ""))
    paragraphs = re.split(r"\n\n+", parts[0].strip())
    out = [" ".join(p.split("\n")) if not p.startswith(" ") else p for p in paragraphs]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        # Words after the last item belong to none.
        out += [f"*{heading}*", items(textwrap.dedent(body))]
    return "\n\n".join(out) + "\n"


def function(name, value, level):
    return f"{'#' * level} `{name}`\n\n```text\n{name}{signature(value)}\n```\n\n{words(value.__doc__)}"


def a_class(value):
    yield f"## `{value.__name__}`\n\n{words(value.__doc__)}"
    if "__init__" in vars(value) and value.__name__ in ("Grid",):
        yield f"```text\n{value.__name__}{signature(value.__init__)}\n```\n"
    own = [c for c in value.__mro__ if c.__module__.startswith("xoff")]
    names = [n for c in reversed(own) for n in vars(c) if not n.startswith("_") or n == "__getitem__"]
    for name in dict.fromkeys(names):
        member = inspect.getattr_static(value, name)
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if inspect.isfunction(member):
            if name != "place":
                yield function(f"{value.__name__}.{name}", member, 3)
        else:
            yield f"### `{value.__name__}.{name}`\n\n{words(inspect.getdoc(member))}"


def main():
    print(HEAD)
    values = {name: getattr(xoff, name) for name in xoff.__all__}
    classes = [v for v in values.values() if inspect.isclass(v)]
    errors = [v for v in classes if issubclass(v, Exception)]
    order = ["Scenario", "Run", "Grid", "GridRun", "Store", "Table", "Answer", "Check", "Comparison"]
    assert sorted(order) == sorted(c.__name__ for c in classes if c not in errors)
    for name in order:
        print("\n".join(a_class(values[name])))
    print("## Functions\n")
    for name, value in values.items():
        if inspect.isfunction(value):
            print(function(f"xoff.{name}", value, 3))
    print(f"## `xoff.plot`\n\n{words(plot.__doc__)}")
    for name in ("slowdown", "cdf", "series", "pauses", "grid"):
        print(function(f"plot.{name}", getattr(plot, name), 3))
    print("## Exceptions\n")
    for value in errors:
        bases = ", ".join(b.__name__ for b in value.__bases__)
        print(f"### `{value.__name__}`\n\nA kind of {bases}. {words(value.__doc__)}")


if __name__ == "__main__":
    main()
