"""Packaged figures: complete, traceable, and equal to the published ones row by row."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayescdm.datasets import (
    PAPER_TABLES,
    list_datasets,
    load_chinchilla_points,
    load_dataset,
    load_openclip,
    paper_table,
)
from bayescdm.datasets.tables import read_sources, read_table
from bayescdm.errors import NotFoundError

SHARED = Path(__file__).parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the published figures (../shared/data) are not beside this checkout"
)


@pytest.fixture(scope="module")
def open_vlm():
    return load_dataset("open-vlm")


# The study open-vlm


@needs_shared
def test_text_scores_and_labels_equal_the_published_ones(open_vlm):
    published = pd.read_csv(SHARED / "open-vlm" / "text_scores.csv").set_index("backbone")
    benchmarks = ["IFEval", "BBH", "MATH-Lvl-5", "GPQA", "MUSR", "MMLU-PRO"]
    ours = open_vlm.text_scores.loc[published.index, benchmarks]
    pd.testing.assert_frame_equal(ours * 100, published[benchmarks], rtol=1e-12, check_names=False)
    labels = open_vlm.backbones.loc[published.index]
    assert labels[["family", "variant"]].equals(published[["family", "variant"]])
    np.testing.assert_allclose(labels["params"] / 1e9, published["params_b"], rtol=1e-12)
    scored = published[benchmarks].notna().all(axis=1)
    sources = published["source"].str.removeprefix("no entry in ")
    for label, source in sources[scored].items():
        assert source in labels.loc[label, "source"]


@needs_shared
def test_every_published_score_is_packaged_with_its_source():
    published = pd.read_csv(SHARED / "open-vlm" / "runs.csv")
    sources = read_sources("open_vlm")["source"]
    vlms = read_table("open_vlm", "vlms")
    ours = read_table("open_vlm", "scores").merge(vlms, on="run", validate="many_to_one")
    ours["source"] = ours["source"].map(sources)
    ours["score"] = ours["score"] * 100
    ours["recipe"] = ours["recipe"].str.replace("TinyLLaVA-Factory-", "TinyLLaVA-")
    columns = {"recipe": "recipe", "vision_encoder": "encoder", "vlm": "run", "backbone": "backbone"}
    keys = [*columns, "samples", "benchmark", "source"]
    ours = ours.drop(columns="vlm").rename(columns={new: old for old, new in columns.items()})
    pd.testing.assert_frame_equal(
        ours[[*keys, "score"]].sort_values(keys, ignore_index=True),
        published[[*keys, "score"]].sort_values(keys, ignore_index=True),
        rtol=1e-12,
    )


def test_accuracies_are_means_over_the_benchmarks_that_a_recipe_shares(open_vlm):
    for _, runs in open_vlm.runs.groupby("recipe"):
        scores = open_vlm.scores[open_vlm.scores["run"].isin(runs.index)]
        table = scores.pivot(index="run", columns="benchmark", values="score").dropna(axis="columns")
        assert (runs["n_benchmarks"] == table.shape[1]).all()
        pd.testing.assert_series_equal(
            runs["accuracy"], table.mean(axis=1).loc[runs.index], check_names=False, rtol=1e-12
        )


def test_a_recipe_keeps_everything_but_the_volume(open_vlm):
    volumes = open_vlm.runs.groupby("recipe")["volume"].nunique()
    assert volumes[volumes > 1].to_dict() == {
        "Infinity-MM staged | SigLIP-SO400M/14-384": 5,
        "LLaVA-1.5-LoRA (ICONS) | CLIP-L/14-336": 2,
    }
    assert (open_vlm.runs.groupby("recipe")["encoder"].nunique() == 1).all()
    assert (open_vlm.runs["recipe"].str.split(" | ", regex=False).str[-1] == open_vlm.runs["encoder"]).all()


def test_the_two_printings_of_tinyllava_are_separate_recipes(open_vlm):
    factory = open_vlm.runs["vlm"].str.startswith("TinyLLaVA-Factory")
    assert factory.sum() == 14
    assert (open_vlm.runs["recipe"].str.startswith("TinyLLaVA-Factory") == factory).all()


def test_one_straggler_is_left_out_for_the_sake_of_its_peers(open_vlm):
    left_out = [note for note in open_vlm.notes if note.code == "incomplete-benchmarks"]
    assert [note.severity for note in left_out] == ["warning", "note", "note"]
    assert "InternVL2-4B" in left_out[0].message
    assert "InternVL2-4B" not in open_vlm.runs.index
    assert len(open_vlm.runs) == 88


def test_runs_without_text_scores_stay_and_are_reported(open_vlm):
    assert len(open_vlm.runs) - len(open_vlm.fitted_runs) == 17
    notes = [note for note in open_vlm.notes if note.code == "no-text-scores"]
    assert "17 of 88 runs stand on 13 backbones" in notes[0].message


def test_known_oddities_travel_with_the_study(open_vlm):
    assert sum(note.code == "data-note" for note in open_vlm.notes) >= 20
    assert {note.where for note in open_vlm.notes if note.code == "text-outlier"} == {
        "text benchmark IFEval",
        "text benchmark MATH-Lvl-5",
    }


def test_one_benchmark_or_a_group_may_be_chosen():
    one = load_dataset("open-vlm", benchmarks="MMMU-val")
    assert set(one.runs["benchmark"]) == {"MMMU-val"}
    group = load_dataset("open-vlm", benchmarks="document")
    assert group.runs["benchmark"].str.startswith("document: average of").all()
    assert 0 < len(one.runs) < len(group.runs) < 89


def test_every_benchmark_has_one_group(open_vlm):
    grouped = [name for group in open_vlm.settings["benchmark_groups"].values() for name in group]
    assert len(grouped) == len(set(grouped)) == 52
    assert set(open_vlm.scores["benchmark"]) <= set(grouped)


@pytest.mark.parametrize("folder", ["open_vlm", "loss", "paper"])
def test_every_row_of_every_table_names_a_listed_source(folder):
    listed = set(read_sources(folder).index)
    used = set()
    for path in (files("bayescdm.datasets") / folder).iterdir():
        table = read_table(folder, path.name.removesuffix(".csv"))
        if path.name not in ("sources.csv", "notes.csv", "vlms.csv"):
            assert table["source"].isin(listed).all(), path.name
            used |= set(table["source"])
    assert used == listed


def test_mixtures_of_experts_have_fewer_active_parameters(open_vlm):
    sparse = open_vlm.backbones["active_params"] < open_vlm.backbones["params"]
    assert set(open_vlm.backbones.loc[sparse, "family"]) == {"Mixtral"}


def test_unknown_study_names_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'open-vlm'"):
        load_dataset("open_vlm")


def test_datasets_are_listed_with_counts_and_sources(open_vlm):
    row = list_datasets().set_index("name").loc["open-vlm"]
    assert row["kind"] == "real"
    assert row["n_backbones"] == 152
    assert row["n_scored"] == 139
    assert row["n_with_runs"] == 44
    assert row["n_recipes"] == 34
    assert row["n_runs"] == 88
    assert row["n_benchmarks"] == 52
    assert "arXiv:2402.14289 Table A1" in row["sources"]
    cited = row["sources"].split("; ")
    assert len(cited) == len(set(cited)) > 20


# Loss points


@needs_shared
def test_chinchilla_points_equal_the_published_ones():
    published = pd.read_csv(SHARED / "loss" / "chinchilla_points.csv")
    ours = load_chinchilla_points(drop_highest=0)
    columns = ["params", "flops", "loss", "source"]
    pd.testing.assert_frame_equal(ours[columns], published[columns])
    np.testing.assert_allclose(ours["tokens"], published["tokens"], rtol=1e-6)


@needs_shared
def test_openclip_models_equal_the_published_ones():
    published = pd.read_csv(SHARED / "loss" / "openclip_zero_shot.csv").rename(
        columns={
            "samples_seen": "samples",
            "imagenet_zero_shot_acc": "accuracy",
            "imagenet_zero_shot_error": "error",
        }
    )
    pd.testing.assert_frame_equal(load_openclip()[published.columns], published)


def test_five_points_of_highest_loss_are_left_out_by_default():
    all_points = load_chinchilla_points(drop_highest=0)
    points = load_chinchilla_points()
    assert len(all_points) == 245
    assert points["loss"].max() < all_points["loss"].nlargest(5).min()
    assert len(points) == 240


@pytest.mark.parametrize("points", [load_chinchilla_points(), load_openclip()])
def test_loss_points_are_complete_positive_and_traceable(points):
    assert points.notna().all(axis=None)
    assert (points.select_dtypes("number") > 0).all(axis=None)
    assert points["source"].str.contains("arXiv:").all()


# Tables of the paper


def seed_lines() -> set[str]:
    """Lines of the paper's text, without links and citations."""
    text = (SHARED.parent / "seeds" / "what-transfers-from-text-to-vision.txt").read_text(encoding="utf-8")
    return {re.sub(r"\s*\[.*", "", line).strip() for line in text.splitlines()}


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_each_table_of_the_paper_is_complete_and_traceable(name):
    table = paper_table(name)
    assert table["source"].str.startswith("arXiv 2608.00013 ").all()
    assert table.drop(columns="statement", errors="ignore").notna().all(axis=None)


def test_roster_counts_are_those_of_the_paper():
    roster = paper_table("roster")
    assert len(roster) == 34
    assert roster["family"].nunique() == 7
    assert roster["variant"].value_counts().to_dict() == {"base": 17, "instruct": 17}
    assert roster["params"].agg(["min", "max"]).tolist() == [600_000_000, 72_000_000_000]
    sparse = roster[roster["active_params"] < roster["params"]]
    assert sparse["backbone"].tolist() == ["Qwen3-30B-A3B-Base", "Qwen3-30B-A3B"]


@needs_shared
def test_roster_equals_table_4():
    roster = paper_table("roster")
    lines = seed_lines()
    for row in roster.itertuples():
        printed = f"{row.backbone} {row.variant.title()} {row.params / 1e9:g}B"
        if row.active_params < row.params:
            printed += f" (A{row.active_params / 1e9:g}B)"
        assert printed in lines or f"{row.family} {printed}" in lines


def test_benchmark_counts_are_those_of_the_paper():
    text = paper_table("text_benchmarks")
    multimodal = paper_table("multimodal_benchmarks")
    assert (len(text), text["category"].nunique()) == (40, 6)
    assert (len(multimodal), multimodal["category"].nunique()) == (35, 4)


@needs_shared
@pytest.mark.parametrize("name", ["text_benchmarks", "multimodal_benchmarks"])
def test_benchmarks_equal_tables_5_and_6(name):
    short = {"BIG-Bench": " BB", "BIG-Bench Hard": " BBH", "MMLU": " MMLU", "own": ""}
    lines = seed_lines()
    for row in paper_table(name).itertuples():
        printed = row.benchmark + short[getattr(row, "collection", "own")]
        assert printed in lines or f"{row.category} {printed}" in lines


def test_every_text_benchmark_has_one_transfer_coefficient():
    coefficients = paper_table("transfer_coefficients")
    assert set(coefficients["benchmark"]) == set(paper_table("text_benchmarks")["benchmark"])
    assert coefficients["regime"].value_counts().to_dict() == {"positive": 29, "tax": 11}
    assert ((coefficients["lambda"] > 0) == (coefficients["regime"] == "positive")).all()
    ranked = coefficients.assign(size=coefficients["lambda"].abs()).sort_values(["regime", "rank"])
    assert ranked.groupby("regime")["size"].apply(lambda size: size.is_monotonic_decreasing).all()


@needs_shared
def test_transfer_coefficients_equal_table_7():
    text = "\n".join(seed_lines())
    printed = {name: float(value) for name, value in re.findall(r"\b([A-Za-z]\w+)([+-]0\.\d{3})", text)}
    printed["contextual_parametric_knowledge_conflicts"] = printed.pop("contextual_param_knowledge_conflicts")
    coefficients = paper_table("transfer_coefficients").set_index("benchmark")["lambda"]
    assert coefficients.to_dict() == printed


@needs_shared
@pytest.mark.parametrize(
    ("name", "label", "printed"),
    [
        ("rates_by_family", "family", {}),
        ("rates_by_variant", "variant", {"base": "Base", "instruct": "Chat"}),
    ],
)
def test_rates_equal_tables_2_and_3(name, label, printed):
    lines = seed_lines()
    for _, row in paper_table(name).iterrows():
        rates = " ".join(f"{100 * row[rate]:.2f}" for rate in ("B0", "Bm", "mean_B", "mae"))
        assert f"{printed.get(row[label], row[label])} {row['A']:.3f} {rates}" in lines


@needs_shared
def test_ablation_equals_table_1():
    printed = "\n".join(seed_lines())
    for _, rows in paper_table("ablation").groupby("law"):
        assert "".join(f"{mae:.3%}" for mae in rows["mae"]) in printed


def test_published_figures_hold_every_number_of_the_analyses():
    figures = paper_table("published_figures")
    assert set(figures["analysis"]) == {
        "fit",
        "transfer",
        "absorption",
        "ablation",
        "leave-one-family-out",
        "transfer-coefficients",
        "base-against-instruct",
        "families",
        "batch-size",
        "text-against-multimodal",
        "loss",
    }
    values = figures.set_index(["analysis", "quantity", "subject"])["value"]
    assert values.index.is_unique
    assert values["fit", "mae", "32 backbones"] == 0.01287
    assert values["base-against-instruct", "mean_B", "instruct"] == 0.0147
    assert values["families", "Bm", "Llama"] == 0.0455
    assert values["ablation", "mae", "Qwen2.5-72B base, with Bm"] == 0.02055
    assert values["text-against-multimodal", "spearman", "VLMs"] == 0.791
    assert values["transfer-coefficients", "lambda", "piqa"] == 0
    assert pd.api.types.is_float_dtype(values)


def test_unknown_table_names_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'roster'"):
        paper_table("rooster")
