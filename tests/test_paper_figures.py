"""Every published figure beside ours, in one table and by one command, or a plain reason why not."""

import importlib
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.datasets import paper_table
from bayescdm.errors import RequestError
from bayescdm.paper import PaperFits, published_against_ours
from bayescdm.paper.readers import figure_columns, readable_figures


def held_out(known_fit, **options):
    fit = known_fit(500)
    weights = np.where((fit.study.runs["backbone"] == "g-base").to_numpy(), 0.0, 1.0)
    return known_fit(500, weights=weights, **options)


def validation(families):
    """Judged runs of a left-out family each, two runs outside their interval for the last."""
    judged = {"accuracy": 0.5, "run_95_lower": 0.4, "run_95_upper": 0.6, "error": 0.01, "crps": 0.01}
    rows = pd.DataFrame(
        [{"family": f, "backbone": f, **judged, "evaluable": 1} for f in families for _ in range(10)]
    )
    rows.loc[len(rows) - 2 :, "accuracy"] = 0.7
    return SimpleNamespace(
        rows=rows, model="known", study="known", volume_unit="tokens", simulated=True, converged=True
    )


@pytest.fixture(scope="module")
def fits(simulated_fit, known_fit):
    no_decay = held_out(known_fit, Bm=(("family", "variant"), np.zeros((2, 500, 2, 2))))
    left_out = validation(["DeepSeek", "Falcon3", "Gemma-2", "Qwen3"])
    return PaperFits(simulated_fit, held_out(known_fit), no_decay, left_out, {})


@pytest.fixture(scope="module")
def table(fits):
    return published_against_ours(fits)


def test_every_published_figure_has_a_row_and_each_row_a_figure_or_a_reason(table):
    published = paper_table("published_figures")
    asked = set(zip(published["analysis"], published["quantity"], published["subject"]))
    rows = list(zip(table["analysis"], table["quantity"], table["subject"]))
    assert len(set(rows)) == len(rows)
    assert asked <= set(rows)
    assert (table["ours"].notna() == (table["cannot"] == "")).all()
    values = published.set_index(["analysis", "quantity", "subject"])["value"]
    shown = table.dropna(subset=["published"]).set_index(["analysis", "quantity", "subject"])["published"]
    assert shown.sort_index().equals(values.rename("published").sort_index().astype(float))


def test_figures_are_those_of_the_analyses(table, simulated_fit):
    one = table.set_index(["quantity", "subject"])
    claims = cdm.variant_claims(simulated_fit).set_index("quantity")
    assert one.at[("Bm", "instruct"), "ours"] == pytest.approx(claims.at["Bm", "instruct"])
    assert one.at[("p_claim", claims.at["A", "claim"]), "ours"] == claims.at["A", "p_claim"]
    families = cdm.family_estimates(simulated_fit).set_index(["family", "quantity"])
    assert one.at[("B0", "Falcon3"), "ours"] == pytest.approx(families.at[("Falcon3", "B0"), "mean"])
    assert one.at[("A", "Llama"), "true"] == pytest.approx(families.at[("Llama-3.2", "A"), "true"])
    assert one.at[("within_band", "Falcon3"), "ours"] == 1
    assert one.at[("within_band", "Qwen3"), "ours"] == 0
    assert one.at[("elpd_difference", "held-out models, without − with Bm"), "ours"] != 0


def test_lambda_is_compared_at_the_published_length(table):
    own = table[table["quantity"] == "lambda"]
    assert len(own) == 40
    assert np.linalg.norm(own["ours"]) == pytest.approx(np.linalg.norm(own["published"]))
    assert own["true"].to_numpy() == pytest.approx(own["published"].to_numpy(), abs=1e-9)


def test_what_a_real_study_cannot_carry_is_said_plainly(known_fit):
    """A study made by hand: no text benchmark of the paper, none of its families, no 72B model."""
    fits = PaperFits(
        known_fit(500), held_out(known_fit), None, None, {"no_decay": "why 1", "left_out": "why 2"}
    )
    table = published_against_ours(fits)
    why = (
        table[table["published"].notna()]
        .groupby("analysis")["cannot"]
        .agg(lambda reasons: set(reasons) - {""})
    )
    assert why["transfer-coefficients"] == {"none of the study's text benchmarks is in Table 7"}
    assert why["ablation"] == {"why 1"}
    assert why["leave-one-family-out"] == {"why 2"}
    assert "72B" in " ".join(why["absorption"])
    assert "not public" in " ".join(why["batch-size"] | why["loss"])
    assert table.query("analysis == 'absorption'")["ours"].notna().sum() == 1


def test_readers_see_their_units_and_one_line_a_reason(table, fits, known_fit):
    readable = readable_figures(table)
    assert list(readable) == [column.source for column in figure_columns(0.9)]
    row = readable.set_index("figure").loc["B0: Falcon3"]
    assert (row["published"], row["unit"]) == ("1.12", "points per ln D")
    bare = published_against_ours(PaperFits(known_fit(500), None, None, None, dict.fromkeys(
        ("pooled", "no_decay", "left_out"), "not made")))  # fmt: skip
    lines = readable_figures(bare).set_index("analysis")
    assert lines.at["transfer-coefficients", "figure"] == "40 published figures"
    assert len(readable_figures(bare)) < 40


def test_a_fit_of_another_study_is_refused(known_fit, simulated_fit):
    with pytest.raises(RequestError, match="the fit is of made by hand"):
        cdm.fit_paper(simulated_fit.study, fit=known_fit(50))


def test_what_fails_is_kept_as_a_reason(known_fit, monkeypatch):
    """No backbone is larger than 40B: nothing can be held out, and the other analyses go on."""
    fit = known_fit(100)
    said = []
    fits = cdm.fit_paper(fit.study, fit=fit, families=False, report=said.append)
    assert fits.pooled is None
    assert "40B" in fits.why_none["pooled"]
    assert len(said) == 2


def test_command_prints_the_table_once_as_json_and_as_text(monkeypatch, fits, table, tmp_path):
    paper = importlib.import_module("bayescdm.paper")
    monkeypatch.setattr(paper, "fit_paper", lambda *_, **__: fits)
    monkeypatch.setattr(paper, "published_against_ours", lambda *_, **__: table)
    text = CliRunner().invoke(cli.app, ["paper"])
    assert text.exit_code == 0, text.output
    assert "40" in text.stdout
    assert "simulated" in text.stdout
    out = tmp_path / "figures.csv"
    found = CliRunner().invoke(cli.app, ["paper", "--json", "--out", str(out)])
    document = json.loads(found.stdout)
    assert document["facts"]["simulated"] is True
    assert len(document["rows"]) == len(pd.read_csv(out))
    assert CliRunner().invoke(cli.app, ["paper", "--out", str(out)]).exit_code == 1
    assert CliRunner().invoke(cli.app, ["paper", "no-such-study"]).exit_code == 1
