"""The directions of the tree (docs/architecture.md): who may import whom, without circles, and where things live."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("components", "dashboard", "tests")
LIBRARIES_OF_MODELS = {"transformers", "sentence_transformers"}

# Prints "name yes|no|error" for each module named, after importing it: is streamlit or the dashboard loaded now?
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as problem:
        print(name, "error", repr(problem).replace("\\n", " "))
        continue
    print(name, "yes" if {"streamlit", "dashboard"} & set(sys.modules) else "no")
"""

# Hosts that serve scripts, styles and fonts, and any script, style or font with an address of its own.
CDN = re.compile(
    r"\bcdn[\w-]*\.|unpkg\.com|jsdelivr|cdnjs|googleapis\.com|gstatic\.com|esm\.sh|skypack|code\.jquery\.com|"
    r"d3js\.org|bootstrapcdn|use\.fontawesome|typekit|https?://[^\s\"'<>)]+\.(?:js|mjs|css|woff2?|ttf)\b",
    re.IGNORECASE,
)


def files_of(folder: str, *endings: str) -> list[Path]:
    """Files below a folder of the repository with one of these endings, whether git knows them yet or not."""
    found = (path for path in (ROOT / folder).rglob("*") if path.suffix in endings and "__pycache__" not in path.parts)
    return sorted(found)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree, read once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree, found once for all tests."""
    return tuple(ast.walk(tree_of(path)))


def called(node: ast.Call) -> str:
    """What is called, as it is written: "a.b" of a.b(...); empty where it is no plain name."""
    parts, function = [], node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(parts)]) if isinstance(function, ast.Name) else ""


@cache
def imports_in(path: Path) -> tuple[str, ...]:
    """Every module that a file imports (see `imports_of`)."""
    return tuple(imports_of(nodes_of(path)))


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module an import statement names, at any depth; "." in front for a relative one.

    `from a import b` gives "a.b", since b may be a module.
    """
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and called(node) in {"importlib.import_module", "import_module", "__import__"}
        ):
            yield str(node.args[0].value)


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def wrong_imports(folder: str, *packages: str) -> list[str]:
    """ "file imports name" for each import of one of these packages below a folder."""
    return [
        f"{relative(path)} imports {name}"
        for path in files_of(folder, ".py")
        for name in imports_in(path)
        if any(is_within(name, package) for package in packages)
    ]


def test_the_import_reader_sees_every_kind_of_import():
    source = """
import streamlit as st
from components.analysis import pooling, tokens as t
def later():
    from ..charts import curves
    import importlib
    importlib.import_module("transformers")
"""
    assert sorted(imports_of(ast.walk(ast.parse(source)))) == [
        "..charts.curves",
        "components.analysis.pooling",
        "components.analysis.tokens",
        "importlib",
        "streamlit",
        "transformers",
    ]


def test_the_file_walk_finds_the_parts_it_is_about():
    assert ROOT / "components/model/trace.py" in files_of("components", ".py")
    assert ROOT / "components/analysis/pooling.py" in files_of("components/analysis", ".py")
    assert all(".venv" not in path.parts for folder in OURS for path in files_of(folder, ".py"))


def test_components_import_without_streamlit_or_the_dashboard():
    """In a fresh process, which nothing but the components has touched."""
    modules = [module_name(path) for path in files_of("components", ".py")]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    reports = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert [report[0] for report in reports] == modules
    # Once loaded it stays loaded: the first name is the one that did it.
    assert [" ".join(report) for report in reports if report[1] != "no"][:1] == []


def test_components_know_neither_streamlit_nor_the_dashboard():
    assert wrong_imports("components", "streamlit", "dashboard", "tests") == []


def test_the_dashboard_does_not_import_its_tests():
    assert wrong_imports("dashboard", "tests") == []


def test_only_model_and_training_import_transformers():
    allowed = ("components/model/", "components/training/")
    wrong = [line for folder in ("components", "dashboard") for line in wrong_imports(folder, *LIBRARIES_OF_MODELS)]
    assert [line for line in wrong if not line.startswith(allowed)] == []


def test_the_server_never_loads_the_libraries_of_training():
    """They cost memory and seconds: what starts and follows a training process does without them."""
    libraries = ("sentence_transformers", "datasets", "peft", "accelerate")
    importing = {line.split(" ")[0] for line in wrong_imports("components", *libraries)}
    reference = "components/model/verification/reference.py"  # the program of a process of its own, as `worker` is
    assert importing <= {reference, *(f"components/training/{name}.py" for name in ("model", "objectives", "worker"))}
    graph = import_graph("components", "dashboard")
    following = {name for name in graph if "components.training.worker" in graph[name]}
    assert {name.partition(".")[0] for name in following} <= {"components"}
    assert "components.training.worker" not in graph["components.training.runs"]
    assert not [name for name in graph if "components.model.verification.reference" in graph[name]]


def test_only_the_command_line_and_caching_know_several_machines():
    """Nobody has to install Ray: it is imported in one folder, inside its functions, and only when it is asked for."""
    knowing = [
        line for folder in ("components", "dashboard") for line in wrong_imports(folder, "components.distributed")
    ]
    may = ("components/distributed/", "components/command_line/", "dashboard/caching.py ")
    assert [line for line in knowing if not line.startswith(may)] == []
    importing = [line for folder in ("components", "dashboard") for line in wrong_imports(folder, "ray")]
    assert importing
    assert [line for line in importing if not line.startswith("components/distributed/")] == []
    at_once = [
        f"{relative(path)}:{node.lineno}"
        for path in files_of("components/distributed", ".py")
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom) and re.search(r"\b(ray|grpc)\b", ast.unparse(node))
    ]
    assert at_once == []


def test_analysis_and_charts_do_not_know_each_other():
    assert wrong_imports("components/analysis", "components.charts") == []
    assert wrong_imports("components/charts", "components.analysis") == []


def test_analysis_takes_records_and_arrays_not_drawing_libraries():
    assert wrong_imports("components/analysis", "plotly", "matplotlib") == []


def test_the_model_stands_below_everything():
    above = [f"components.{part}" for part in ("analysis", "retrieval", "training", "charts")]
    assert wrong_imports("components/model", *above) == []


def import_graph(*folders: str) -> dict[str, set[str]]:
    """Each module below the folders with those of them that it imports anywhere, under TYPE_CHECKING too."""
    paths = {module_name(path): path for folder in folders for path in files_of(folder, ".py")}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        graph[module] = set()
        for name in imports_in(path):
            known = name  # the longest part of the name that is a module: the rest is something inside it
            while known and known not in paths:
                known = known.rpartition(".")[0]
            if known and known != module:
                graph[module].add(known)
    return graph


def circles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which imports every other, directly or by way of others."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        reached[module], waiting = set(), list(graph[module])
        while waiting:
            name = waiting.pop()
            if name not in reached[module]:
                reached[module].add(name)
                waiting += graph[name]
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in graph
        if module in reached[module]
    }
    return [list(group) for group in sorted(groups)]


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles_of(graph) == [["a", "b", "c"]]
    assert "components.model.catalog" in import_graph("components")["components.model.loader"]


def test_no_modules_import_each_other_in_a_circle():
    """Imports for types alone count: what cannot be described without the other is one thing cut in two."""
    assert circles_of(import_graph("components", "dashboard")) == []


def test_the_first_page_is_imported_without_torch():
    """The import takes seconds; tests/dashboard/jobs/test_warm_up.py has when it begins."""
    graph = import_graph("components", "dashboard")
    training = {f"components.training.{name}" for name in ("runs", "run_folder", "settings", "objectives", "data")}
    modules = sorted(graph["dashboard.main"] | graph["dashboard.views.home.start"] | training)
    assert {"dashboard.state", "dashboard.navigation", *training} <= set(modules)
    code = (
        "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]; print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["False"]


def test_only_the_views_and_their_table_know_the_views():
    wrong = wrong_imports("dashboard", "dashboard.views")
    may = ("dashboard/declared/table.py ", "dashboard/views/")  # the table of what they declare
    assert [line for line in wrong if not line.startswith(may)] == []


def test_views_are_dispatched_in_one_way():
    """A view is drawn by the function that its declaration names, and what is not ready is said by NotReady."""
    gone = {"DRAW", "OF_TOKENS", "OTHER_VIEWS", "NoResult"}
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in files_of("dashboard", ".py")
        for node in nodes_of(path)
        # Of a name, what is taken of something, and what is defined or imported.
        if gone & {getattr(node, part, "") for part in ("id", "attr", "name")}
    ]
    assert found == []


def test_pages_do_not_import_pages():
    """What two pages use lives in dashboard/ui, dashboard/corpora or dashboard/jobs."""
    folders = [path for path in (ROOT / "dashboard/views").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(folders) >= 9
    wrong = [
        line
        for folder in folders
        for line in wrong_imports(relative(folder), "dashboard.views")
        if not is_within(line.split(" imports ")[1], f"dashboard.views.{folder.name}")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("folder", "above"),
    [
        ("dashboard/jobs", ("views", "corpora", "ui", "sharing", "lessons", "navigation", "main", "app")),
        ("dashboard/ui", ("views", "corpora", "navigation", "main", "app")),
        ("dashboard/corpora", ("views", "navigation", "main", "app")),
        ("dashboard/views", ("main", "app")),
        ("dashboard/declared", ("state", "caching", "ui", "jobs", "corpora", "navigation", "main", "app")),
    ],
)
def test_the_dashboards_own_directions(folder, above):
    """views -> corpora -> ui -> jobs: pages stand on the corpora and on what is drawn, and this on the jobs."""
    assert wrong_imports(folder, *(f"dashboard.{part}" for part in above)) == []


def calls_of_streamlit(path: Path) -> set[str]:
    """What a file calls or takes of Streamlit: `x` of `st.x`, and of `from streamlit import x`."""
    attributes = {
        node.attr
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "st"
    }
    taken = {name.removeprefix("streamlit.") for name in imports_in(path) if is_within(name, "streamlit")}
    return attributes | (taken - {"streamlit"})


def test_jobs_draw_nothing():
    """They request work; what a session waits for is drawn by dashboard/ui/waiting."""
    used = {relative(path): calls_of_streamlit(path) for path in files_of("dashboard/jobs", ".py")}
    assert "session_state" in used["dashboard/jobs/requests.py"]
    may = {"session_state", "delta_generator_singletons.context_dg_stack"}
    assert {path: names - may for path, names in used.items() if names - may} == {}


def test_the_reader_of_streamlits_calls_sees_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("import streamlit as st\nfrom streamlit import button\nst.info('x')\nshow = st.markdown\n")
    assert calls_of_streamlit(path) == {"info", "markdown", "button"}


def test_what_is_not_there_is_said_by_one_exception():
    """NotReady, at any depth: no function says by True or None that it has drawn a bar, and nothing else is raised."""
    old = re.compile(r"\bNoResult\b|\bprogress\.ready\b|None (while|until)\b")
    found = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in files_of("dashboard", ".py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if old.search(line)
    ]
    assert found == []


def test_not_ready_is_caught_by_the_frame():
    """A view that caught it would have to draw the reason itself; what one knows meanwhile it draws, and raises it again."""
    found = {
        relative(path): [
            ast.unparse(node)
            for node in nodes_of(path)
            if isinstance(node, ast.ExceptHandler) and node.type is not None and "NotReady" in ast.unparse(node.type)
        ]
        for path in files_of("dashboard", ".py")
    }
    frames = {"dashboard/main.py", "dashboard/ui/waiting/frame.py", "dashboard/ui/waiting/before_work.py"}
    assert found["dashboard/ui/waiting/frame.py"]
    swallowing = [
        path for path, texts in found.items() for text in texts if path not in frames and not text.endswith("raise")
    ]
    assert swallowing == []


def test_our_modules_are_imported_by_one_spelling():
    """`components.x` and `dashboard.x`, never relative and never by a name that depends on sys.path."""
    files = files_of("components", ".py") + files_of("dashboard", ".py")
    bare = {path.relative_to(ROOT).with_suffix("").parts[1] for path in files} - {"__init__", "__main__"}
    assert {"analysis", "model"} <= bare
    wrong = [
        f"{relative(path)} imports {name}"
        for folder in OURS
        for path in files_of(folder, ".py")
        for name in imports_in(path)
        if name.startswith(".") or name.split(".")[0] in bare
    ]
    assert wrong == []


def test_the_import_path_is_changed_in_the_entries_only():
    touching = [
        relative(path)
        for folder in ("components", "dashboard")
        for path in files_of(folder, ".py")
        if re.search(r"\bsys\.path\b", path.read_text(encoding="utf-8"))
    ]
    assert set(touching) <= {"dashboard/app.py", "dashboard/main.py"}


@pytest.mark.parametrize("folder", ["dashboard/pages", "dashboard/components"])
def test_folders_that_streamlit_or_imports_would_mistake(folder):
    assert not (ROOT / folder).exists()


def test_no_dashboard_module_hides_another():
    """Streamlit puts dashboard/ first on sys.path: a dashboard/copy.py would be everybody's `copy`."""
    stems = {path.stem for path in (ROOT / "dashboard").glob("*.py")} - {"__init__"}
    assert stems & (sys.stdlib_module_names | {"streamlit", "components", "tests"}) == set()


def test_a_class_name_has_one_meaning():
    """No two modules define classes of one name."""
    places: dict[str, list[str]] = {}
    for path in (path for folder in ("components", "dashboard") for path in files_of(folder, ".py")):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{relative(path)}:{node.lineno}")
    assert len(places) > 300
    assert {name: each for name, each in places.items() if len(each) > 1} == {}


@cache
def calls_in(path: Path) -> set[str]:
    """The names of all methods and functions of modules that a file calls, as `x` of `st.x(...)`."""
    calls = (node.func for node in nodes_of(path) if isinstance(node, ast.Call))
    return {function.attr for function in calls if isinstance(function, ast.Attribute)}


@pytest.mark.parametrize(
    ("names", "homes"),
    [
        # A browser may send a value that a widget does not offer: `bind` and `checked` check all of them. The models'
        # lists take other names too, which `settings.allowed_model` checks.
        (
            {
                "selectbox",
                "multiselect",
                "radio",
                "pills",
                "segmented_control",
                "select_slider",
                "slider",
                "number_input",
            },
            {"dashboard/ui/sidebar.py"},
        ),
        # Tables render Markdown: `plain_table` escapes it.
        ({"table"}, {"dashboard/ui/figures.py"}),
        # A path of the server: `server_path` asks whether it may be opened.
        ({"expanduser"}, {"dashboard/access.py"}),
    ],
)
def test_what_is_checked_in_one_place_is_called_there_only(names, homes):
    calling = {relative(path) for path in files_of("dashboard", ".py") if calls_in(path) & names}
    assert calling == homes


OWN_FORMAT = r"[+,]*\.[2-9][fe]"  # of a number with two decimals or more: it may have a sign
TEMPLATE = re.compile(r"(?<![%{])\{[^{}]*:" + OWN_FORMAT + r"\}(?!\})")  # of `format`; not of plotly: "%{x:.3f}"


def own_formats(path: Path) -> Iterator[str]:
    """ "file:line" for each number with decimals that a file turns into text by itself, or rounds before it does so.

    What a browser writes (plotly's "%{x:.3f}") and opacities in HTML are no numbers that people read here.
    """
    source = path.read_text(encoding="utf-8").splitlines()
    for node in nodes_of(path):
        is_own = False
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            written = ast.unparse(node.format_spec)[2:-1]
            is_own = bool(re.fullmatch(OWN_FORMAT, written))
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func).rpartition(".")[2] == "round":
                to_tens = any(isinstance(argument, ast.UnaryOp) for argument in node.value.args)  # round(x, -2)
                is_own |= written.endswith("f") and not to_tens
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_own = bool(TEMPLATE.search(node.value))
        if is_own and "rgba(" not in source[node.lineno - 1]:
            yield f"{relative(path)}:{node.lineno}"


def test_the_reader_of_formats_sees_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.py"
    path.write_text(
        'a = f"{x:.3f}"\nb = f"{x:+.2f} and {y:.0f} %"\nc = "{:.2f}".format(x)\nd = f"{round(x, 3):.1f}"\n'
        'e = "{value:.4f}"\nf = f"{x:,} of {y:.1f}"\ng = "%{x:.3f}"\nh = f"rgba(0, 0, 0, {x:.2f})"\n'
    )
    monkeypatch.setitem(globals(), "relative", lambda path: path.name)
    assert sorted(own_formats(path)) == ["one.py:1", "one.py:2", "one.py:3", "one.py:4", "one.py:5"]


def test_numbers_become_text_in_one_place():
    """Rounded once, and with the minus sign of print: components/numbers.py, for every page."""
    assert "components.numbers" in import_graph("components", "dashboard")["components.charts.theme"]
    assert [place for path in files_of("dashboard", ".py") for place in own_formats(path)] == []


def test_a_folder_says_its_purpose_and_holds_about_a_dozen_modules():
    folders = {path.parent for part in ("components", "dashboard") for path in files_of(part, ".py")}
    assert ROOT / "components/analysis" in folders
    silent = [
        relative(folder) for folder in folders if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    ]
    full = [relative(folder) for folder in folders if len(list(folder.glob("*.py"))) > 14]
    assert silent == []
    assert full == []


def test_no_test_module_is_imported_by_another():
    """A test module can be read, moved and run alone: what several of them use lives in tests/support."""
    graph = import_graph("tests")
    assert "tests.support.pages" in graph["tests.dashboard.test_pages"]
    wrong = [
        f"{module} imports {name}"
        for module in sorted(graph)
        for name in sorted(graph[module])
        if re.match(r"test_|conftest$", name.rpartition(".")[2])
    ]
    assert wrong == [], "what tests share belongs in tests/support; fixtures, in the conftest of their common folder"


def test_no_module_is_named_after_nothing():
    names = [relative(path) for folder in OURS for path in files_of(folder, ".py")]
    assert [name for name in names if re.search(r"(^|/)(utils?|helpers?|\w+_(helpers?|utils?))\.py$", name)] == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.jsdelivr.net/npm/d3@5"></script>',
        "@import url(https://fonts.googleapis.com/css?family=Inter);",
        "https://d3js.org/d3.v5.min.js",
        "src: url('http://fonts.example/inter.woff2')",
        "//cdnjs.cloudflare.com/ajax/libs/require.js",
    ],
)
def test_the_pattern_knows_foreign_scripts_and_fonts(text):
    assert CDN.search(text)


def test_nothing_is_loaded_from_elsewhere():
    """The dashboard must draw without internet: no script, style or font comes from another host."""
    endings = (".py", ".js", ".mjs", ".css", ".html", ".toml", ".svg")
    folders = ("components", "dashboard", "assets", ".streamlit")
    files = [path for folder in folders for path in files_of(folder, *endings)]
    files += [ROOT / "pyproject.toml"]
    found = [
        f"{relative(path)}:{number}: {hit.group()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (hit := CDN.search(line))
    ]
    assert found == []


def test_nothing_prints():
    """A logger or the page speaks; the command line in components/__main__.py writes to its streams by name."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for folder in ("components", "dashboard")
        for path in files_of(folder, ".py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_nothing_is_unpickled():
    """Reading a pickle runs what its author wants. Ray and the trainer's checkpoints are named in docs/security.md."""
    modules = ("pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle")
    assert [line for folder in ("components", "dashboard") for line in wrong_imports(folder, *modules)] == []
    calls = [
        f"{relative(path)}:{node.lineno}"
        for folder in ("components", "dashboard")
        for path in files_of(folder, ".py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and (
            called(node) in {"torch.load", "pd.read_pickle", "pandas.read_pickle"}
            or any(word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in node.keywords)
        )
    ]
    assert calls == []


@pytest.mark.parametrize("path", sorted((ROOT / "assets" / "web").glob("*.css")), ids=lambda path: path.name)
def test_a_style_sheet_closes_what_it_opens(path: Path) -> None:
    """An open block makes the rules that follow hold on phones alone, or nowhere."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    depths = list(itertools.accumulate({"{": 1, "}": -1}.get(sign, 0) for sign in text))
    assert min(depths) >= 0
    assert depths[-1] == 0
    assert max(depths) <= 3


def test_codes_of_runs_are_read_and_written_by_run_code_alone():
    """No other module of the views, the jobs or retrieval divides "rr.100.m.6.mean", or puts such a code together."""
    begins = re.compile(r"(m2?|rr|ms|mx|sp|f[rzd0-9]+)\.$")
    wrong = []
    for path in (path for folder in WITH_RUNS for path in files_of(folder, ".py") if path.name != "run_code.py"):
        for node in nodes_of(path):
            divides = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DIVIDE
            if divides and any(isinstance(each, ast.Constant) and each.value in SIGNS for each in node.args):
                wrong.append(f"{relative(path)}:{node.lineno} divides")
            if isinstance(node, ast.JoinedStr) and len(node.values) > 1:
                parts = [each.value if isinstance(each, ast.Constant) else None for each in node.values]
                if begins.match(str(parts[0])) or parts[:3] == [None, ".", None]:
                    wrong.append(f"{relative(path)}:{node.lineno} writes")
    assert wrong == []


WITH_RUNS = ("components/retrieval/rankings", "components/retrieval/fusion")
WITH_RUNS += ("dashboard/jobs", "dashboard/corpora", *(f"dashboard/views/{name}" for name in ("evaluate", "search")))
DIVIDE = {"split", "rsplit", "partition", "rpartition", "removeprefix", "startswith"}
SIGNS = {".", "~", "m.", "m2.", "rr.", "ms.", "mx.", "sp.", "fr."}


def classes_of_retrieval() -> list[ast.ClassDef]:
    """The classes of all that ranks texts, and of what shows it."""
    paths = [path for folder in ("components/retrieval", "dashboard") for path in files_of(folder, ".py")]
    return [node for path in paths for node in nodes_of(path) if isinstance(node, ast.ClassDef)]


KINDS_OF_RANKING = {"Ranking"} | {
    node.name for node in classes_of_retrieval() if "Ranking" in map(ast.unparse, node.bases)
}


def test_one_class_has_the_ranks_of_correct_answers():
    """`Ranking` and what derives from it; `RelevantRanks` are such ranks, of queries with several correct answers."""
    holders = {
        node.name
        for node in classes_of_retrieval()
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and (
            re.search(r"\b(Relevant)?Ranks\b", ast.unparse(field.annotation))
            or (ast.unparse(field.target) == "ranks" and "Int64" in ast.unparse(field.annotation))
        )
    }
    assert holders >= {"Ranking", "RemedyRanking"}
    assert holders - KINDS_OF_RANKING == {"RelevantRanks"}


def test_a_ranking_of_scores_is_made_by_one_function():
    """Every one comes from `of_scores`, by itself or as that of candidates; elsewhere there are only those of ranks."""
    scored = {"scores", "best", "hit_scores", "first_ten", "tied", "tied_shown"}
    made = [
        f"{relative(path)}:{node.lineno}"
        for folder in ("components", "dashboard")
        for path in files_of(folder, ".py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and called(node) in KINDS_OF_RANKING
        and scored & {str(keyword.arg) for keyword in node.keywords}
    ]
    assert made == []
