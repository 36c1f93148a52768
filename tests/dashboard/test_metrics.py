"""The figures' text format, by hand-written examples of Prometheus' own description."""

from __future__ import annotations

from dashboard.metrics import Metric, Sample, exposition


def test_the_text_is_as_prometheus_reads_it() -> None:
    metrics = (
        Metric("passes_total", "counter", "All passes\nof C:\\models.", (Sample(12, {}),)),
        Metric(
            "jobs",
            "gauge",
            'The "lanes".',
            (Sample(0, {"lane": "maps"}), Sample(1.5, {"lane": 'a "b" \\ c\n', "kind": "x"})),
        ),
        Metric("nothing", "gauge", "Left out.", ()),
    )
    assert exposition(metrics) == (
        "# HELP bert_internals_passes_total All passes\\nof C:\\\\models.\n"
        "# TYPE bert_internals_passes_total counter\n"
        "bert_internals_passes_total 12\n"
        '# HELP bert_internals_jobs The "lanes".\n'
        "# TYPE bert_internals_jobs gauge\n"
        'bert_internals_jobs{lane="maps"} 0\n'
        'bert_internals_jobs{lane="a \\"b\\" \\\\ c\\n",kind="x"} 1.5\n'
    )
